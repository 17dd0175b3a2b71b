const quote = (cell: string) => (/[",\n\r]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell)

const toCsv = (rows: string[][]) => `${rows.map((row) => row.map(quote).join(',')).join('\n')}\n`

/** A table that was copied from a spreadsheet or a page, as CSV, or null when it is no table. */
export function pastedTable(clip: { html: string; text: string }): { csv: string; rows: number } | null {
  if (/<table/i.test(clip.html)) {
    const page = new DOMParser().parseFromString(clip.html, 'text/html')
    const rows = [...page.querySelectorAll('table tr')].map((tr) =>
      [...tr.querySelectorAll('th,td')].map((c) => (c.textContent ?? '').trim()),
    )
    const table = rows.filter((r) => r.length > 0)
    if (table.length > 1 && (table[0]?.length ?? 0) > 1) return { csv: toCsv(table), rows: table.length }
  }
  const lines = clip.text.replace(/\r\n?/g, '\n').replace(/\n+$/, '').split('\n')
  if (lines.length < 2) return null
  const rows = lines.map((line) => line.split('\t'))
  const width = rows[0]?.length ?? 0
  if (width < 2 || rows.some((r) => r.length !== width)) return null
  return { csv: toCsv(rows), rows: rows.length }
}

/** The first rows of a table as text that are not empty. A quoted cell may have the sign between cells, and ends of lines. */
export function firstRows(text: string, sign: string, most: number): string[][] {
  const rows: string[][] = []
  let row: string[] = []
  let cell = ''
  let at = 0
  const endRow = () => {
    row.push(cell)
    if (row.length > 1 || cell) rows.push(row)
    row = []
    cell = ''
  }
  while (at < text.length && rows.length < most) {
    const c = text[at]
    if (c === '"' && cell === '') {
      const end = closing(text, at)
      // A quote that nothing closes is a letter like another.
      if (end < 0) cell += c
      else {
        cell = text.slice(at + 1, end).replaceAll('""', '"')
        at = end
      }
    } else if (c === sign) {
      row.push(cell)
      cell = ''
    } else if (c === '\n') endRow()
    else if (c !== '\r' || text[at + 1] !== '\n') cell += c
    at++
  }
  if (rows.length < most && (row.length || cell)) endRow()
  return rows
}

/** Where a cell that is quoted from a place on ends, or -1. */
function closing(text: string, from: number): number {
  let at = from + 1
  for (;;) {
    at = text.indexOf('"', at)
    if (at < 0 || text[at + 1] !== '"') return at
    at += 2
  }
}

const newline = 10
const carriage = 13
const mark = 34
/** Before the text of some files in UTF-8; it is no part of their first cell. */
const byteOrderMark = [0xef, 0xbb, 0xbf]
// Where in a cell the next byte is.
const begins = 0
const plain = 1
const inside = 2
const closed = 3

/** Counts the rows of a table as bytes that come in parts: those that are not empty, each as one however many lines its quoted cells have. */
export class RowCounter {
  private readonly sign: number
  private lines = 0
  private inLine = false
  private ended = 0
  private inRow = false
  private at = begins
  /** How many bytes of the mark the table began with so far, or -1 after its beginning. */
  private marks = 0

  constructor(sign: string) {
    this.sign = sign.charCodeAt(0)
  }

  /** In UTF-8 and GB18030 none of these signs is part of another character. */
  add(bytes: Uint8Array) {
    for (const byte of bytes) {
      if (this.marks >= 0 && this.isMarked(byte)) continue
      if (byte === carriage) continue
      if (byte === newline) this.end()
      else {
        this.inLine = true
        this.inRow = true
        if (byte === mark) this.quote()
        else if (this.at !== inside) this.at = byte === this.sign ? begins : plain
      }
    }
  }

  /** Whether a byte ends the mark that the table begins with. What only looked like one so far is text. */
  private isMarked(byte: number): boolean {
    this.marks = byte === byteOrderMark[this.marks] ? this.marks + 1 : -1
    if (this.marks !== byteOrderMark.length) return false
    this.marks = -1
    this.inLine = false
    this.inRow = false
    this.at = begins
    return true
  }

  private end() {
    this.lines += Number(this.inLine)
    this.inLine = false
    if (this.at === inside) return
    this.ended += Number(this.inRow)
    this.inRow = false
    this.at = begins
  }

  private quote() {
    if (this.at === inside) this.at = closed
    else if (this.at !== plain) this.at = inside
  }

  /** When a quote was never closed there is no telling what it was: lines are counted. */
  get rows(): number {
    return this.at === inside ? this.lines + Number(this.inLine) : this.ended + Number(this.inRow)
  }
}
