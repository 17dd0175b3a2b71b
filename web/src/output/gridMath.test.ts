import { expect, it } from 'vitest'
import { across, lines, mostCells, mostTall, rowHeight, tall, toLine } from './gridMath'

it('has few lines in the document, however many there are', () => {
  for (const count of [0, 1, 60, 100_000, 3_000_000, 1e9])
    for (const part of [0, 0.3, 0.999, 1]) {
      const reach = Math.max(0, tall(count) - 800)
      const w = lines(count, reach * part, 800, 30)
      expect((w.last - w.first + 1) * 30).toBeLessThanOrEqual(mostCells)
      if (part === 0) expect(w.first).toBe(0)
      if (part === 1 && count) expect(w.last).toBe(count - 1)
      expect(w.last).toBeLessThan(Math.max(1, count))
    }
})

it('draws lines where they are looked at', () => {
  const count = 5_000_000
  for (const line of [0, 17, 2_500_000, count - 1]) {
    const at = toLine(count, line, 0, 400)
    const w = lines(count, at, 400, 10)
    expect(w.first <= line && line <= w.last).toBe(true)
    const y = w.top + (line - w.first) * rowHeight
    expect(y).toBeGreaterThanOrEqual(at - rowHeight)
    expect(y + rowHeight).toBeLessThanOrEqual(at + 400 + rowHeight)
  }
  expect(tall(count)).toBe(mostTall * rowHeight)
})

it('stays where it is when the line is in sight', () => {
  expect(toLine(1000, 10, 100, 400)).toBe(100)
  expect(toLine(1000, 0, 100, 400)).toBe(0)
  expect(toLine(1000, 30, 100, 400)).toBe(31 * rowHeight - 400)
})

it('takes the columns in sight', () => {
  const widths = Array.from({ length: 200 }, () => 100)
  const lefts = widths.map((_, i) => i * 100)
  const c = across(lefts, widths, 1, 5000, 600)
  expect(c[0]).toBeGreaterThan(45)
  expect(c.length).toBeLessThan(12)
})
