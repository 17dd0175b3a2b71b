import { describe, expect, it } from 'vitest'
import { branchThrough, versionsOf } from './tree'

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
  it('know the versions of a question', () => {
    const [a, b] = turns
    if (a && b) expect([ids(versionsOf(turns, b)), ids(versionsOf(turns, a))]).toEqual(['b b2', 'a'])
  })
  it('begin with versions of the first question', () => {
    const rooted = [...turns, { id: 'a2' }, { id: 'e', parent: 'a2' }]
    expect(ids(branchThrough(rooted))).toBe('a2 e')
    expect(ids(branchThrough(rooted, 'a'))).toBe('a b2')
    expect(rooted.map((t) => ids(versionsOf(rooted, t)))).toEqual(['a a2', 'b b2', 'c', 'b b2', 'd', 'a a2', 'e'])
  })
  it('have no tries but those that are asked for', () => {
    const tried = [
      { id: 'a', tries: { chosen: 'a2' } },
      { id: 'a1', tries: { of: 'a' } },
      { id: 'a2', tries: { of: 'a' } },
      { id: 'b', parent: 'a', tries: { chosen: 'b1' } },
      { id: 'b1', parent: 'a', tries: { of: 'b' } },
      { id: 'b2', parent: 'a', tries: { of: 'b' } },
      { id: 'c', parent: 'a' },
    ]
    expect([ids(branchThrough(tried)), ids(branchThrough(tried.slice(0, 6))), ids(branchThrough(tried, 'b2'))]).toEqual(
      ['a c', 'a b', 'a b2'],
    )
    expect(tried.map((t) => ids(versionsOf(tried, t)))).toEqual([
      'a a1',
      'a a1',
      'a a1 a2',
      'b b2 c',
      'b b1 b2 c',
      'b b2 c',
      'b b2 c',
    ])
  })
})
