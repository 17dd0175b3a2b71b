import { parseInert } from '../api/trusted'

// The table of a DataFrame as pandas writes it, read into plain text cells.

export const maxRows = 5000
export const maxColumns = 200
export const maxCells = 200_000
const maxText = 2000
const maxHtml = 30_000_000

export interface Table {
  index: string[] // names of the index columns
  columns: string[]
  rows: Row[]
  total: { rows: number; columns: number } // of the DataFrame; what is here may be less
  gap: number | null // before this row others are left out
  cutColumns: number // columns that are not here
}

export interface Row {
  index: Value[]
  cells: Value[]
}

/** What a cell says; null is a missing value. */
export type Value = string | null

export type Kind = 'number' | 'date' | 'bool' | 'text' | 'empty'

export function isDataFrame(html: unknown): html is string {
  return typeof html === 'string' && html.length < maxHtml && /<table[^>]{0,200}class="dataframe\b/.test(html)
}

/** Rows of HTML that take so long to read that it is asked before. */
export const largeRows = 2000

function ends(html: string, most: number): { count: number; at: number } {
  let [count, at] = [0, 0]
  for (let i = html.indexOf('</tr'); i >= 0; i = html.indexOf('</tr', i + 4)) {
    count++
    if (count === most) at = i
  }
  return { count, at }
}

export const countRows = (html: string) => ends(html, 0).count

export function parseTable(text: string): Table | null {
  if (text.length > maxHtml) return null
  // What is not shown is not read either: the time that it takes is bounded.
  const { count: all, at } = ends(text, maxRows + 50)
  const html =
    at > 0 ? `${text.slice(0, at)}</tr></tbody></table>${text.slice(-200).replace(/^.*<\/table>/s, '')}` : text
  const root = parseInert(html)
  const tables = root.querySelectorAll('table')
  const table = tables[0]
  // Something else around the table is not a DataFrame alone, and is shown as HTML.
  if (!table || tables.length > 1 || root.querySelector('script, img, svg, iframe, form, a[href]')) return null
  const heads = [...table.querySelectorAll('thead tr')].slice(0, 10)
  const body = [...table.querySelectorAll('tbody tr')]
  const grid = spread(body.slice(0, maxRows + 1))
  const depth = grid[0]?.filter((c) => c.head).length ?? heads.at(-1)?.querySelectorAll('th').length ?? 0
  const indexes = grid.length > 0 ? depth : 0
  const { names, labels } = header(spread(heads), indexes)
  const width = Math.min(labels.length, maxColumns, Math.floor(maxCells / Math.max(1, grid.length)))
  let rows = grid.slice(0, maxRows).map(
    (cells): Row => ({
      index: cells.slice(0, indexes).map((c) => c.text),
      cells: Array.from({ length: labels.length }, (_, i) => cells[indexes + i]?.text ?? ''),
    }),
  )
  // pandas leaves out the middle and says so by rows and columns of dots.
  const dots = rows.findIndex((r) => [...r.index, ...r.cells].every((t) => t === '...') && r.cells.length > 0)
  if (dots >= 0) rows = rows.filter((_, i) => i !== dots)
  const hole = labels.findIndex(
    (l, i) => l.split(' · ').every((p) => p === '...') && rows.every((r) => r.cells[i] === '...'),
  )
  const keep = labels.map((_, i) => i).filter((i) => i !== hole && i < width + (hole >= 0 ? 1 : 0))
  const said = /([\d,]+)\s+rows\s+×\s+([\d,]+)\s+columns/.exec(
    root.body.lastElementChild?.textContent?.slice(-200) ?? '',
  )
  const count = (text: string | undefined, least: number) =>
    Math.max(least, Math.min(Number(text?.replaceAll(',', '') ?? 0), 1e12) || 0)
  const total = { rows: count(said?.[1], rows.length), columns: count(said?.[2], keep.length) }
  if (!said && body.length > maxRows) total.rows = Math.max(body.length, all - heads.length)
  return {
    index: names,
    columns: keep.map((i) => labels[i] ?? ''),
    rows: rows.map((r) => ({ index: r.index, cells: keep.map((i) => r.cells[i] ?? '') })),
    total,
    gap: dots >= 0 ? dots : body.length > maxRows ? rows.length : null,
    cutColumns: Math.max(0, total.columns - keep.length),
  }
}

interface Cell {
  text: string
  head: boolean
}

/** Rows with their colspan and rowspan written out. */
function spread(rows: Element[]): Cell[][] {
  const down: { left: number; cell: Cell }[] = []
  return rows.map((row) => {
    const out: Cell[] = []
    const below = () => {
      for (;;) {
        const over = down[out.length]
        if (!over || over.left <= 0) return
        over.left--
        out.push(over.cell)
      }
    }
    for (const td of row.children) {
      below()
      const cell = { text: text(td), head: td.localName === 'th' }
      const across = span(td, 'colspan', maxColumns)
      const rowsBelow = span(td, 'rowspan', maxRows) - 1
      for (let i = 0; i < across && out.length < maxColumns + 20; i++) {
        if (rowsBelow > 0) down[out.length] = { left: rowsBelow, cell }
        out.push(cell)
      }
    }
    below()
    return out
  })
}

function span(td: Element, name: string, most: number): number {
  const n = Number.parseInt(td.getAttribute(name) ?? '1', 10)
  return n > 1 ? Math.min(n, most) : 1
}

function text(td: Element): string {
  const t = (td.textContent ?? '').trim()
  return t.length > maxText ? `${t.slice(0, maxText)}…` : t
}

function header(rows: Cell[][], indexes: number): { names: string[]; labels: string[] } {
  let names = Array.from({ length: indexes }, () => '')
  let heads = rows
  const last = rows.at(-1)
  // A last row with names of the index only.
  if (rows.length > 1 && last && last.slice(indexes).every((c) => c.text === '')) {
    names = last.slice(0, indexes).map((c) => c.text)
    heads = rows.slice(0, -1)
  }
  const width = Math.max(0, ...heads.map((r) => r.length)) - indexes
  const labels = Array.from({ length: Math.max(0, width) }, (_, i) =>
    heads
      .map((r) => r[indexes + i]?.text ?? '')
      .filter((t) => t !== '')
      .join(' · '),
  )
  return { names, labels }
}

const nothing = new Set(['', 'NaN', 'None', 'NaT', '<NA>', 'nan', 'null'])
export const missing = (t: Value) => t === null || nothing.has(t)

export function toNumber(t: string): number {
  if (!/^[+-]?(\d[\d,]*\.?\d*|\.\d+)(e[+-]?\d+)?%?$|^-?inf$/i.test(t)) return Number.NaN
  if (/inf$/i.test(t)) return t.startsWith('-') ? -Infinity : Infinity
  return Number(t.replaceAll(',', '').replace('%', ''))
}

const date = /^\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d+)?)?)?([+-]\d{2}:?\d{2}|Z)?$/

export function kindOf(values: readonly Value[]): Kind {
  let kind: Kind = 'empty'
  for (const v of values) {
    if (v === null || missing(v)) continue
    const is: Kind = !Number.isNaN(toNumber(v))
      ? 'number'
      : date.test(v)
        ? 'date'
        : /^(True|False)$/.test(v)
          ? 'bool'
          : 'text'
    if (kind === 'empty') kind = is
    else if (kind !== is) return 'text'
    if (kind === 'text') return kind
  }
  return kind
}

/** Order of the rows by a column: what is missing comes last, either way. */
export function order(values: readonly Value[], kind: Kind, down: boolean): number[] {
  const numbers = kind === 'number' ? values.map((v) => toNumber(v ?? '')) : null
  const words = kind === 'text' ? new Intl.Collator(undefined, { numeric: true }) : null
  return values
    .map((_, i) => i)
    .sort((a, b) => {
      const [x, y] = [values[a] ?? '', values[b] ?? '']
      const [mx, my] = [missing(x), missing(y)]
      if (mx || my) return mx === my ? a - b : mx ? 1 : -1
      const by = numbers
        ? (numbers[a] ?? 0) - (numbers[b] ?? 0)
        : words
          ? words.compare(x, y)
          : x < y
            ? -1
            : x > y
              ? 1
              : 0
      return (down ? -by : by) || a - b
    })
}

export interface Profile {
  kind: Kind
  /** What the kernel calls it. */
  type?: string
  missing: number
  distinct: number
  min: string
  max: string
  bars: number[] // counts, of equal ranges or of the most frequent values
  /** The most frequent value of a column without a range, and which part of all rows has it; 0 when none is there twice. */
  top?: { value: string; part: number }
}

export function profile(values: readonly Value[], kind: Kind): Profile {
  const present = values.filter((v): v is string => !missing(v))
  const counts = new Map<string, number>()
  for (const v of present) counts.set(v, (counts.get(v) ?? 0) + 1)
  const out: Profile = {
    kind,
    missing: values.length - present.length,
    distinct: counts.size,
    min: '',
    max: '',
    bars: [],
  }
  if (present.length === 0) return out
  if (kind === 'number' || kind === 'date') {
    const pairs = present
      .map((v) => [kind === 'number' ? toNumber(v) : Date.parse(v.replace(' ', 'T')), v] as const)
      .filter(([n]) => Number.isFinite(n))
      .sort((a, b) => a[0] - b[0])
    const [low, high] = [pairs[0], pairs.at(-1)]
    if (!low || !high) return out
    out.min = low[1]
    out.max = high[1]
    const n = Math.min(16, Math.max(1, counts.size))
    out.bars = new Array(n).fill(0)
    const wide = high[0] - low[0] || 1
    for (const [v] of pairs) {
      const at = Math.min(n - 1, Math.floor(((v - low[0]) / wide) * n))
      out.bars[at] = (out.bars[at] ?? 0) + 1
    }
  } else {
    const sorted = [...counts].sort((a, b) => b[1] - a[1])
    out.bars = sorted.slice(0, 12).map(([, n]) => n)
    const [value, n] = sorted[0] ?? ['', 0]
    out.top = { value, part: n > 1 ? n / values.length : 0 }
  }
  return out
}

export type Block = { columns: readonly Value[]; rows: readonly (readonly Value[])[] }

export function tsv(block: readonly (readonly Value[])[]): string {
  return block.map((r) => r.map((c) => (c ?? '').replace(/[\t\r\n]+/g, ' ')).join('\t')).join('\n')
}

export function asHtml(block: readonly (readonly Value[])[]): string {
  const safe = (t: Value) =>
    (t ?? '').replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c] ?? c)
  return `<table>${block.map((r) => `<tr>${r.map((c) => `<td>${safe(c)}</td>`).join('')}</tr>`).join('')}</table>`
}

/** A number of a float's full length is shown shorter; what is copied has all of it. */
export function short(v: Value, kind: Kind): string {
  if (v === null) return ''
  return kind === 'number' && /^-?\d+\.\d{7,}(e[+-]\d+)?$/.test(v) ? String(Number(Number(v).toPrecision(7))) : v
}

/** For Excel: a cell that would be read as a formula gets a ' before it, and the file says that it is UTF-8. */
export function csv({ columns, rows }: Block): string {
  const cell = (value: Value) => {
    const t = value ?? ''
    return /[",\r\n]/.test(t) ? `"${t.replaceAll('"', '""')}"` : t
  }
  return `${[columns, ...rows].map((r) => r.map(cell).join(',')).join('\r\n')}\r\n`
}
