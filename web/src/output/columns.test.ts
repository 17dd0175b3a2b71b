import { expect, it } from 'vitest'
import { groups, lookAt, nothingSeen, numberText, type Seen, wide } from './columns'
import { knownOf } from './view'

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
