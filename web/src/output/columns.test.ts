import { act, createElement } from 'react'
import { createRoot } from 'react-dom/client'
import { expect, it } from 'vitest'
import {
  type Columns,
  edgesOf,
  groups,
  lookAt,
  nothingSeen,
  numberText,
  type Seen,
  useColumns,
  useSeen,
  wide,
} from './columns'
import { knownOf, type View } from './view'

const seenOf = (values: string[]): Seen => values.reduce((s, v) => lookAt(s, v, 'number'), nothingSeen)
const shown = (values: string[], grouped = false) => values.map((v) => numberText(v, seenOf(values), grouped))

it('writes the numbers of a column with the same number of decimals', () => {
  expect(shown(['112166.4', '112609.64', '64', '79.5'])).toEqual(['112166.40', '112609.64', '64.00', '79.50'])
  expect(shown(['-4.494116913', '0.1257302', '3'])).toEqual(['-4.494117', '0.125730', '3.000000'])
  expect(shown(['1', '20'])).toEqual(['1', '20'])
  expect(shown(['0.00001234', '0.5'])).toEqual(['0.00001234', '0.500000'])
  expect(shown(['1e-20', '0.5', 'inf', '12%'])).toEqual(['1e-20', '0.5', 'inf', '12%'])
  expect(shown(['12345678901234567890', '1'])).toEqual(['12345678901234567890', '1'])
})

it('groups amounts, and not what names something', () => {
  expect(shown(['1234567.5', '-100000', '999'], true)).toEqual(['1,234,567.5', '-100,000.0', '999.0'])
  const large = seenOf(['20240101'])
  expect(['revenue', 'paid'].map((n) => groups(n, large))).toEqual([true, true])
  expect(['order_id', 'orderId', 'ID', 'Year', 'zip code', '编号'].map((n) => groups(n, large))).not.toContain(true)
  expect(groups('n', seenOf(['2024', '1999']))).toBe(false)
})

it('widens a column by each value that needs more, and never cuts a number', () => {
  const before = seenOf(['1', '2'])
  const after = lookAt(before, '99999', 'number')
  expect(wide(after, 'number', false)).toBeGreaterThanOrEqual(5 * 8.3 + 24)
  expect(wide(after, 'number', true)).toBeGreaterThan(wide(after, 'number', false))
  expect(lookAt(after, '12345', 'number')).toBe(after)
  expect(wide(seenOf(['0.5', '1000']), 'number', false)).toBeGreaterThanOrEqual('1000.5'.length * 8.3 + 24)
  expect(wide(lookAt(nothingSeen, '9'.repeat(4000), 'number'), 'number', false)).toBeLessThan(500)
})

it('knows the most frequent value of a column of the kernel', () => {
  const of = (count: number) =>
    knownOf({ type: 'object', rows: 1e6, looked_at: 100, common: [{ value: 'Rome', count }] })
  expect(of(62)).toMatchObject({ profile: { top: { value: 'Rome', part: 0.62 } } })
  expect(of(1)).toMatchObject({ profile: { top: { part: 0 } } })
  expect(knownOf({ type: 'int64', bars: [1], edges: [0, 1] })).not.toHaveProperty('profile.top')
  expect(knownOf({ common: [null], looked_at: 'x' })).toMatchObject({ profile: { distinct: 0 } })
})

it('looks at each row of a table once, however often the grid renders', async () => {
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true })
  let reads = 0
  const counting = (row: string[]) =>
    new Proxy(row, {
      get: (to, key) => {
        if (typeof key === 'string' && /^\d+$/.test(key)) reads++
        return Reflect.get(to, key)
      },
    })
  const names = Array.from({ length: 50 }, (_, c) => `column ${c}`)
  const rows = Array.from({ length: 300 }, (_, r) => counting(names.map((_, c) => String(r * c))))
  const view = {
    names,
    kinds: names.map(() => 'number'),
    indexes: 1,
    total: { rows: 300, columns: 49 },
    count: 300,
    row: (i: number) => rows[i],
  } as unknown as View
  let columns: Columns | undefined
  const Grid = ({ last }: { last: number; n: number }) => {
    columns = useColumns(view, false, true)
    useSeen(columns, 0, last)
    return null
  }
  const root = createRoot(document.createElement('div'))
  const render = (last: number, n: number) => act(async () => root.render(createElement(Grid, { last, n })))
  await render(20, 0)
  expect(reads).toBe(100 * names.length)
  const widths = columns?.widths
  for (let n = 1; n < 10; n++) await render(20, n)
  expect(reads).toBe(100 * names.length)
  expect(columns?.widths).toBe(widths)
  // New rows in sight are looked at, and widen.
  await render(299, 10)
  expect(reads).toBe(300 * names.length)
  expect(columns?.widths).not.toBe(widths)
  await act(async () => root.unmount())
})

it('knows where each column begins', () => {
  expect(edgesOf([10, 20, 30])).toEqual({ lefts: [0, 10, 30], total: 60 })
})
