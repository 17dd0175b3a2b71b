import { expect, it } from 'vitest'
import { byDay } from './days'

it('groups by the day of the last use', () => {
  const now = new Date(2026, 4, 20, 9)
  const at = (d: number, h = 12) => ({ used_at: new Date(2026, 4, d, h).toISOString() })
  expect(byDay([at(20, 8), at(20, 0), at(19), at(15), at(2)], now).map((g) => [g.day, g.items.length])).toEqual([
    ['today', 2],
    ['yesterday', 1],
    ['week', 1],
    ['older', 1],
  ])
})
