import { describe, expect, it } from 'vitest'
import { branchThrough, siblings } from './tree'

const turns = [
  { id: 'a' },
  { id: 'b', parent: 'a' },
  { id: 'c', parent: 'b' },
  { id: 'b2', parent: 'a' },
  { id: 'd', parent: 'c' },
]
const ids = (list: { id: string }[]) => list.map((t) => t.id).join(' ')

describe('branches', () => {
  it('lead to the newest turn', () => {
    expect(ids(branchThrough(turns))).toBe('a b c d')
    expect(ids(branchThrough(turns.slice(0, 4)))).toBe('a b2')
  })
  it('go through a turn', () => {
    expect(ids(branchThrough(turns, 'b2'))).toBe('a b2')
    expect(ids(branchThrough(turns, 'b'))).toBe('a b c d')
    expect(ids(branchThrough(turns, 'unknown'))).toBe('a b c d')
  })
  it('end in circles, too', () => {
    expect(
      branchThrough([
        { id: 'x', parent: 'y' },
        { id: 'y', parent: 'x' },
      ]).length,
    ).toBe(2)
    expect(branchThrough([])).toEqual([])
  })
  it('know their siblings', () => {
    const [a, b] = turns
    if (a && b) expect([ids(siblings(turns, b)), ids(siblings(turns, a))]).toEqual(['b b2', 'a'])
  })
})
