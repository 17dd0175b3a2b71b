import { expect, it } from 'vitest'
import { printed, printedSheet } from './table'

const table = (rows: number, columns: number) => ({
  index: [''],
  columns: Array.from({ length: columns }, (_, i) => `c${i}`),
  rows: Array.from({ length: rows }, (_, r) => ({
    index: [`${r}`],
    cells: Array.from({ length: columns }, () => '1.5'),
  })),
  total: { rows, columns },
  gap: null,
  cutColumns: 0,
})

it('a small table is printed whole, numbers as numbers', () => {
  const p = printed(table(3, 2))
  expect(p.heads.map((h) => h.text)).toEqual(['', 'c0', 'c1'])
  expect(p.heads[1]?.number).toBe(true)
  expect(p.rows).toHaveLength(3)
  expect([p.moreRows, p.moreColumns]).toEqual([0, 0])
})

it('a large table is printed up to a bound, and how much more there is', () => {
  const p = printed(table(500, 40))
  expect(p.rows).toHaveLength(200)
  expect(p.rows[0]).toHaveLength(16)
  expect([p.moreRows, p.moreColumns]).toEqual([300, 25])
})

it('what did not come with the output counts, and a cell is bounded', () => {
  const p = printedSheet({
    names: ['a'],
    types: ['object'],
    indexName: 'i',
    total: 1000,
    matching: 1000,
    moreColumns: 3,
    rows: [['0', 'x'.repeat(4000)]],
  })
  expect(p.rows[0]?.[1]?.length).toBe(201)
  expect([p.moreRows, p.moreColumns]).toEqual([999, 3])
})
