import { type Kind, kindOf, type Table, type Value } from './table'

// A table as the kernel tells it, in an event or as the answer of the server. It comes from a sandbox: all of it is checked.

export const mime = 'application/vnd.cove.table+json'

const most = { rows: 1000, columns: 400, text: 4000, total: 1e12 }

export interface Piece {
  names: string[]
  types: string[]
  indexName: string
  total: number
  matching: number
  moreColumns: number
  /** The index of a row first, then its cells. */
  rows: Value[][]
}

export interface Sheet extends Piece {
  /** What to ask the kernel for, or nothing. */
  name: string
}

const count = (n: unknown) => (typeof n === 'number' && n > 0 ? Math.min(Math.floor(n), most.total) : 0)
const line = (t: unknown, limit = most.text) => (typeof t === 'string' ? t.slice(0, limit) : '')

function value(v: unknown): Value {
  if (v === null || v === undefined) return null
  if (typeof v === 'string') return v.slice(0, most.text)
  if (typeof v === 'number') return String(v)
  if (typeof v === 'boolean') return v ? 'True' : 'False'
  return ''
}

export function pieceOf(from: unknown): Piece | null {
  if (from === null || typeof from !== 'object') return null
  const t = from as Record<string, unknown>
  if (!Array.isArray(t.columns) || !Array.isArray(t.rows) || !Array.isArray(t.index)) return null
  if (t.columns.length > most.columns || t.rows.length > most.rows) return null
  const columns = t.columns as { name?: unknown; type?: unknown }[]
  const index = t.index as unknown[]
  return {
    names: columns.map((c) => line(c?.name, 500)),
    types: columns.map((c) => line(c?.type, 100)),
    indexName: line(t.index_name, 500),
    total: Math.max(count(t.total), t.rows.length),
    matching: count(t.matching),
    moreColumns: count(t.more_columns),
    rows: t.rows.map((r: unknown, i) => {
      const cells = Array.isArray(r) ? r : []
      return [value(index[i]), ...columns.map((_, c) => value(cells[c]))]
    }),
  }
}

export function sheetOf(from: unknown): Sheet | null {
  const piece = pieceOf(from)
  if (!piece) return null
  const name = (from as { name?: unknown }).name
  return { ...piece, name: typeof name === 'string' && name.length <= 200 ? name : '' }
}

/** Whether all of the table is here. */
export const whole = (s: Piece) => s.total <= s.rows.length && s.moreColumns === 0

/** Whether two pieces are of tables with the same columns and as many rows; the first may know fewer of the columns. */
export function alike(a: Piece, b: Piece): boolean {
  return (
    a.total === b.total &&
    a.names.length + a.moreColumns === b.names.length + b.moreColumns &&
    a.names.every((n, i) => n === b.names[i] && a.types[i] === b.types[i])
  )
}

/** Whether the rows of both, as far as both have them, say the same. */
export function agree(a: Piece, b: Piece): boolean {
  const rows = Math.min(a.rows.length, b.rows.length)
  const columns = Math.min(a.names.length, b.names.length) + 1
  for (let r = 0; r < rows; r++) for (let c = 0; c < columns; c++) if (a.rows[r]?.[c] !== b.rows[r]?.[c]) return false
  return true
}

/** The kind of each column, the index first. */
export function kindsOf(s: Piece): Kind[] {
  const at = (c: number) => kindOf(s.rows.map((r) => r[c] ?? null))
  return [at(0), ...s.types.map((t, i) => byType(t) ?? at(i + 1))]
}

export function byType(type: string): Kind | null {
  if (/^u?int|^float|^complex|^decimal/i.test(type)) return 'number'
  if (/^datetime|^date\b|^timestamp/i.test(type)) return 'date'
  if (/^bool/i.test(type)) return 'bool'
  if (/^(str|string|category)/i.test(type)) return 'text'
  return null
}

export function tableOf(s: Piece): Table {
  return {
    index: [s.indexName],
    columns: s.names,
    rows: s.rows.map((r) => ({ index: r.slice(0, 1), cells: r.slice(1) })),
    total: { rows: s.total, columns: s.names.length + s.moreColumns },
    gap: s.total > s.rows.length ? s.rows.length : null,
    cutColumns: s.moreColumns,
  }
}
