import type { KeyboardEvent } from 'react'

export const rowHeight = 28
export const headHeight = (profiled: boolean) => (profiled ? 116 : 32)

/** Browsers bound how tall an element may be; of more rows than this the scrollbar is scaled. */
export const mostTall = 500_000
const over = 4
/** Cells in the document, the index and the head among them. */
export const mostCells = 1400

export interface Place {
  row: number
  column: number
}

export interface Box {
  top: number
  bottom: number
  left: number
  right: number
}

export const boxOf = (a: Place, b: Place): Box => ({
  top: Math.min(a.row, b.row),
  bottom: Math.max(a.row, b.row),
  left: Math.min(a.column, b.column),
  right: Math.max(a.column, b.column),
})
export const inside = (b: Box, row: number, c: number) => row >= b.top && row <= b.bottom && c >= b.left && c <= b.right

/** The height of all rows, as far as the scrollbar goes. */
export const tall = (lines: number) => Math.min(lines, mostTall) * rowHeight

export interface Window {
  first: number
  last: number
  /** Where the first line is, below the head. */
  top: number
}

/** The lines that are in sight, with some around them, and where to draw them. */
export function lines(count: number, scrollTop: number, room: number, columns: number): Window {
  const fits = Math.ceil(room / rowHeight) + 1
  const around = Math.max(0, Math.min(over, Math.floor((mostCells / Math.max(1, columns) - fits) / 2)))
  const reach = Math.max(1, tall(count) - room)
  const at = Math.max(0, Math.min(scrollTop, reach))
  // As a fraction of what can be scrolled; with fewer lines than the bound it is one to one.
  const from = count <= mostTall ? at / rowHeight : (at / reach) * (count - room / rowHeight)
  const first = Math.max(0, Math.min(count - 1, Math.floor(from)) - around)
  const last = Math.min(count - 1, Math.floor(from) + fits + around)
  const top = count <= mostTall ? first * rowHeight : at - (from - first) * rowHeight
  return { first, last, top }
}

/** Where to scroll so that a line is in sight, from where it is now. */
export function toLine(count: number, line: number, scrollTop: number, room: number): number {
  if (count <= mostTall) {
    const top = line * rowHeight
    if (top < scrollTop) return top
    return top + rowHeight > scrollTop + room ? top + rowHeight - room : scrollTop
  }
  const reach = tall(count) - room
  const fits = room / rowHeight
  const from = (scrollTop / reach) * (count - fits)
  const wanted = line < from ? line : line + 1 > from + fits ? line + 1 - fits : from
  return (wanted / (count - fits)) * reach
}

/** The columns in sight. */
export function across(lefts: readonly number[], widths: readonly number[], fixed: number, left: number, room: number) {
  const out: number[] = []
  for (let c = fixed; c < lefts.length; c++) {
    const at = lefts[c] ?? 0
    const reach = 160
    if (at + (widths[c] ?? 0) >= left - reach && at <= left + room + reach) out.push(c)
  }
  return out
}

export function step(e: KeyboardEvent, p: Place, lastRow: number, lastColumn: number, page: number): Place | null {
  const far = e.ctrlKey || e.metaKey
  const by: Record<string, [number, number]> = {
    ArrowUp: [far ? -lastRow : -1, 0],
    ArrowDown: [far ? lastRow : 1, 0],
    ArrowLeft: [0, far ? -lastColumn : -1],
    ArrowRight: [0, far ? lastColumn : 1],
    PageUp: [-page, 0],
    PageDown: [page, 0],
    Home: [far ? -lastRow : 0, -lastColumn],
    End: [far ? lastRow : 0, lastColumn],
  }
  const d = by[e.key]
  if (!d) return null
  const clamp = (n: number, most: number) => Math.max(0, Math.min(most, n))
  return { row: clamp(p.row + d[0], lastRow), column: clamp(p.column + d[1], lastColumn) }
}

export const measure = (t: string) => {
  let n = 0
  for (const c of t.slice(0, 60)) n += (c.codePointAt(0) ?? 0) > 0x2e7f ? 1.8 : 1
  return n
}
