import { saveText } from './save'

const quote = (cell: string) => (/[",\n\r]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell)

// A spreadsheet takes a cell with one of these at its beginning for a formula, and cells hold what others wrote.
const harmless = (cell: string | number) =>
  typeof cell === 'string' && /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : String(cell)

export const csvOf = (head: string[], rows: (string | number)[][]) =>
  `${[head, ...rows].map((row) => row.map((cell) => quote(harmless(cell))).join(',')).join('\r\n')}\r\n`

/** Saves a table as a file. The mark at its beginning tells spreadsheets that it is UTF-8. */
export const saveCsv = (name: string, head: string[], rows: (string | number)[][]) =>
  saveText(name, `\ufeff${csvOf(head, rows)}`, 'text/csv;charset=utf-8')
