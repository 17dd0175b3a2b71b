import { kindsOf, type Piece, tableOf } from '../output/sheet'
import { type Kind, kindOf, short, type Table } from '../output/table'

export const mostRows = 200
const mostColumns = 16
const longestCell = 200

/** A table as it is printed: up to a bound, and how much more there is. */
export interface Printed {
  heads: { text: string; number: boolean }[]
  rows: string[][]
  moreRows: number
  moreColumns: number
}

const cell = (text: string) => (text.length > longestCell ? `${text.slice(0, longestCell)}…` : text)

/** kinds are those of the index columns and the columns, in this order. */
export function printed(table: Table, kinds?: readonly Kind[]): Printed {
  const width = table.index.length + table.columns.length
  const shown = Math.min(width, mostColumns)
  const some = table.rows.slice(0, mostRows).map((r) => [...r.index, ...r.cells].slice(0, shown))
  const names = [...table.index, ...table.columns].slice(0, shown)
  const of = names.map((_, c) => kinds?.[c] ?? kindOf(some.map((r) => r[c] ?? null)))
  return {
    heads: names.map((text, c) => ({ text: cell(text), number: of[c] === 'number' })),
    rows: some.map((r) => r.map((v, c) => cell(short(v, of[c] ?? 'text')))),
    moreRows: Math.max(0, table.total.rows - some.length),
    moreColumns: table.cutColumns + width - shown,
  }
}

export const printedSheet = (piece: Piece) => printed(tableOf(piece), kindsOf(piece))
