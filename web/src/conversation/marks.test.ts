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
  it('goes by the times of the server alone', () => {
    // The clock of this machine is a year behind, or a year ahead: what came after a rerun stays new.
    const after = [turn('a', 0, { reruns: [{ step: 1, at: at(6) }] }), turn('b', 8)]
    expect([...outdatedOf(after)]).toEqual(['a'])
    expect(isStaleStep(after, 'b', 1)).toBe(false)
  })
  it('counts a rerun for the turns alone whose session it ran in', () => {
    const versions = [
      turn('a', 0, { session: 's1', reruns: [{ step: 1, at: at(6), session: 's2' }] }),
      turn('b', 2, { session: 's1' }),
      turn('c', 4, { session: 's2' }),
    ]
    // The answer below the step itself, too: it is shown as it ran again.
    expect([...outdatedOf(versions)]).toEqual(['a', 'c'])
    expect(['a', 'b', 'c'].map((id) => isStaleStep(versions, id, 2))).toEqual([true, false, true])
    // Without a session of its own it ran in that of its turn.
    const own = versions.map((t) => (t.id === 'a' ? { ...t, reruns: [{ step: 1, at: at(6) }] } : t))
    expect([...outdatedOf(own)]).toEqual(['a', 'b'])
    // What ran again in the other session since does not depend on it.
    const both = [
      turn('a', 0, {
        session: 's1',
        reruns: [
          { step: 1, at: at(6) },
          { step: 2, at: at(5), session: 's2' },
        ],
      }),
    ]
    expect(isStaleStep(both, 'a', 2)).toBe(false)
  })
  it('counts reruns for copies of turns in a fork', () => {
    const copy = [
      turn('a', 0, { session: 'fork', origin: { session: 's1' }, reruns: [{ step: 1, at: at(6), session: 's1' }] }),
    ]
    expect([...outdatedOf(copy)]).toEqual(['a'])
    expect(isStaleStep(copy, 'a', 2)).toBe(true)
  })
  it('takes turns back up to the one that says so', () => {
    expect([...undoneOf(branch)]).toEqual(['c', 'd'])
    expect([...undoneOf(branch.slice(3))]).toEqual([])
  })
})
