import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { mostPages, Pages, pageRows, plainly, type Reader } from './pages'
import { type Sheet, sheetOf } from './sheet'

const total = 10_000
const columns = [
  { name: 'n', type: 'int64' },
  { name: 'city', type: 'object' },
]
const row = (i: number) => [i, `c${i}`]

function kernel(change: { total?: number; rows?: (i: number) => unknown[] } = {}) {
  const asked: { offset: number; limit: number; sort: string; filter: string }[] = []
  let error: unknown = null
  const reader: Reader = {
    read: async (_, q) => {
      asked.push(q)
      if (error) throw error
      const all = Array.from({ length: change.total ?? total }, (_, i) => i)
      const kept = q.filter ? all.filter((i) => `c${i}`.includes(q.filter)) : all
      if (q.descending) kept.reverse()
      const part = kept.slice(q.offset, q.offset + q.limit)
      return {
        columns,
        more_columns: 0,
        total: change.total ?? total,
        matching: kept.length,
        index: part.map(String),
        index_name: '',
        rows: part.map(change.rows ?? row),
      }
    },
    profile: async () => ({}),
  }
  return { reader, asked, fail: (e: unknown) => (error = e) }
}

const head = sheetOf({
  name: '~1',
  columns,
  more_columns: 0,
  total,
  matching: total,
  index: Array.from({ length: 50 }, (_, i) => String(i)),
  index_name: '',
  rows: Array.from({ length: 50 }, (_, i) => row(i)),
}) as Sheet

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())
const settle = () => vi.advanceTimersByTimeAsync(1)

it('asks for nothing that came with the event', async () => {
  const { reader, asked } = kernel()
  const pages = new Pages(reader, head)
  pages.see(0, 30)
  await settle()
  expect(asked).toEqual([])
  expect(pages.row(3)).toEqual(['3', '3', 'c3'])
  expect(pages.row(60)).toBeUndefined()
})

it('makes sure of the table, then reads what is in sight, and keeps twenty pages', async () => {
  const { reader, asked } = kernel()
  const pages = new Pages(reader, head)
  pages.see(390, 420)
  await settle()
  expect(asked.map((q) => [q.offset, q.limit])).toEqual([
    [0, 50],
    [200, 200],
    [400, 200],
  ])
  expect(pages.row(399)?.[2]).toBe('c399')
  for (let p = 0; p < 30; p++) {
    pages.see(p * pageRows, p * pageRows + 20)
    await settle()
  }
  expect(pages.held).toBe(mostPages)
  expect(pages.row(29 * pageRows)?.[2]).toBe('c5800')
  expect(pages.row(5 * pageRows)).toBeUndefined()
})

it('gives up what is not in sight any more', async () => {
  const { reader, asked } = kernel()
  const pages = new Pages(reader, head)
  pages.see(1000, 1020)
  pages.see(9000, 9020)
  await settle()
  expect(pages.row(9001)?.[2]).toBe('c9001')
  expect(asked.filter((q) => q.offset === 1000)).toEqual([])
})

it('sorts and filters in the kernel, and shows the old rows until then', async () => {
  const { reader } = kernel()
  const pages = new Pages(reader, head)
  pages.ask({ sort: '0', descending: true, filter: '' })
  expect(pages.row(0)?.[1]).toBe('0')
  expect(pages.asking).toBe(true)
  await settle()
  expect(pages.row(0)?.[1]).toBe('9999')
  pages.ask({ sort: '', descending: false, filter: 'c99' })
  await settle()
  expect(pages.count).toBe(111)
  pages.ask(plainly)
  await settle()
  expect(pages.row(0)?.[1]).toBe('0')
})

it('says that a name means another table now', async () => {
  for (const other of [kernel({ total: 9 }), kernel({ rows: (i) => [i + 1, 'x'] })]) {
    const pages = new Pages(other.reader, head)
    pages.see(500, 510)
    await settle()
    expect(pages.trouble?.kind).toBe('changed')
    expect(pages.row(0)?.[2]).toBe('c0')
  }
})

it('waits while the kernel runs code, and stops where the table is gone', async () => {
  const { reader, fail, asked } = kernel()
  const pages = new Pages(reader, head)
  fail({ code: 'session_busy', message: 'the kernel runs code' })
  pages.see(500, 510)
  await settle()
  expect(pages.trouble?.kind).toBe('busy')
  fail(null)
  await vi.advanceTimersByTimeAsync(2100)
  expect(pages.trouble).toBeNull()
  expect(pages.row(505)?.[2]).toBe('c505')
  fail({ code: 'variable_unknown', message: 'gone' })
  pages.see(5000, 5010)
  await settle()
  expect(pages.trouble?.kind).toBe('gone')
  const before = asked.length
  await vi.advanceTimersByTimeAsync(60_000)
  expect(asked.length).toBe(before)
})

it('reads all rows one after the other', async () => {
  const { reader } = kernel()
  const pages = new Pages(reader, head)
  const got: (readonly unknown[])[] = []
  await pages.rows(20, 1234, new AbortController().signal, (rows) => got.push(...rows))
  expect(got.length).toBe(1214)
  expect(got[0]?.[1]).toBe('20')
  expect(got.at(-1)?.[1]).toBe('1233')
})

it('refuses what is no table', () => {
  for (const bad of [null, 5, {}, { columns: [], rows: 'x', index: [] }]) expect(sheetOf(bad)).toBeNull()
  const odd = sheetOf({ columns: [{ name: 5 }, null], rows: [[{}], 'x', [null, true]], index: [1], total: -3 })
  expect(odd?.rows).toEqual([
    ['1', '', null],
    [null, null, null],
    [null, null, 'True'],
  ])
})
