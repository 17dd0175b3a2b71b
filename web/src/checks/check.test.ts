import { expect, test } from 'vitest'
import { notebookOf, ofLast } from './check'

test('programs become the cells of a notebook, the last ones where all are too many', () => {
  const two = notebookOf(['a = 1', 'b = a'])
  expect(two.cells).toBe(2)
  expect(JSON.parse(two.code).cells.map((c: { source: string }) => c.source)).toEqual(['a = 1', 'b = a'])
  const long = '#'.repeat(500_000)
  const cut = notebookOf([long, long, 'x'])
  expect(cut.cells).toBe(2)
  const own = notebookOf(['a', '#'.repeat(2_000_000)])
  expect(own.cells).toBe(1)
})

test('findings of the last cell are those of a program by itself', () => {
  const finding = { rule: 'B006', severity: 'warning' as const, line: 1, column: 1, message: 'm' }
  const report = {
    file: 'f',
    notes: ['n'],
    items: [
      { ...finding, cell: 1 },
      { ...finding, cell: 2, line: 3 },
    ],
  }
  expect(ofLast(report, 2)).toEqual({ file: 'f', notes: ['n'], items: [{ ...finding, line: 3 }] })
})
