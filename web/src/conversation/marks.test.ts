import { describe, expect, it } from 'vitest'
import { isStaleStep, outdatedOf, undoneOf } from './marks'

const at = (minute: number) => `2026-11-30T12:${String(minute).padStart(2, '0')}:00Z`
const turn = (id: string, minute: number, more = {}) => ({
  id,
  created_at: at(minute),
  finished_at: at(minute + 1),
  ...more,
})
const branch = [
  turn('a', 0),
  turn('b', 2, { reruns: [{ step: 2, at: at(6) }] }),
  turn('c', 4),
  turn('d', 8, { undone: { from: 'c' } }),
  turn('e', 10),
]

describe('what people did after turns', () => {
  it('makes answers old that were written before', () => {
    expect([...outdatedOf(branch)]).toEqual(['b', 'c'])
    expect([
      ...outdatedOf(branch.map(({ reruns: _, ...t }: ReturnType<typeof turn> & { reruns?: unknown }) => t)),
    ]).toEqual([])
  })
  it('makes steps old that ran before, and not those that ran again since', () => {
    const stale = (id: string, step: number) => isStaleStep(branch, id, step)
    expect([stale('a', 1), stale('b', 1), stale('b', 2), stale('b', 3), stale('c', 1), stale('d', 1)]).toEqual([
      false,
      false,
      false,
      true,
      true,
      false,
    ])
    const after = branch.map((t) => (t.id === 'c' ? { ...t, reruns: [{ step: 1, at: at(7) }] } : t))
    expect(isStaleStep(after, 'c', 1)).toBe(false)
  })
  it('takes turns back up to the one that says so', () => {
    expect([...undoneOf(branch)]).toEqual(['c', 'd'])
    expect([...undoneOf(branch.slice(3))]).toEqual([])
  })
})
