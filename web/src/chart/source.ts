import { client, data, type Schemas } from '../api/client'
import { asProblem } from '../api/problem'
import { type Sheet, sheetOf } from '../output'
import { agree, alike, kindsOf, type Piece } from '../output/sheet'
import { kindOf } from '../output/table'
import { readerOf } from '../panels/tables'
import { type Choice, countsRows, isNamed } from './guess'
import type { Origin } from './settings'

// Where the table is that somebody looks at: charts are drawn by code, which needs a name for it.

type Variable = Schemas['Variable']
type Preview = Schemas['Preview']

export const kernel = 'main'

/** A table, and how code gets at it. */
export interface Source {
  from: Origin
  sheet: Sheet
}

const first = 50
const mostTried = 8

async function sheetIn(session: string, name: string): Promise<Sheet | null> {
  const query = { offset: 0, limit: first, sort: '', descending: false, filter: '' }
  const piece = await readerOf(session, kernel).read(name, query, AbortSignal.timeout(30_000))
  return sheetOf({ ...(piece as object), name })
}

const formOf = (type: string): Extract<Origin, { of: 'variable' }>['form'] =>
  type.startsWith('polars') ? 'polars' : /\bSeries$/.test(type) ? 'series' : /\bndarray$/.test(type) ? 'array' : 'frame'

const variablesOf = async (session: string): Promise<readonly Variable[]> =>
  (await data(client.GET('/sessions/{session}/kernels/{kernel}/variables', { params: { path: { session, kernel } } })))
    .items

/** A variable as a source. Null: it is none, or no table. */
export async function sourceOfVariable(session: string, name: string): Promise<Source | null> {
  const [sheet, all] = await Promise.all([sheetIn(session, name), variablesOf(session)])
  const type = all.find((v) => v.name === name)?.type ?? ''
  return sheet && { from: { of: 'variable', name, form: formOf(type) }, sheet }
}

const same = (a: Piece, b: Piece) => alike(a, b) && agree(a, b)

/** A table that is read, unless it is gone or cannot be read. That Python runs code is nothing that is said of a table. */
async function readIfThere(session: string, name: string): Promise<Sheet | null> {
  try {
    return await sheetIn(session, name)
  } catch (error) {
    if (asProblem(error).passing || asProblem(error).code === 'session_busy') throw error
    return null
  }
}

/** The newest variable that has the table that is shown, or else what Python keeps of the cell's result; null: Python has no name for it. */
export async function sourceOfShown(session: string, shown: Sheet, count: number): Promise<Source | null> {
  const columns = shown.names.length + shown.moreColumns
  const fits = ({ table, shape }: Variable) => table && shape?.[0] === shown.total && (shape[1] ?? 1) === columns
  const found = (await variablesOf(session)).filter(fits).reverse().slice(0, mostTried)
  for (const v of found) {
    const sheet = await readIfThere(session, v.name)
    if (sheet && same(shown, sheet)) return { from: { of: 'variable', name: v.name, form: formOf(v.type) }, sheet }
  }
  if (count < 1) return null
  const sheet = await readIfThere(session, `_${count}`)
  return sheet && same(shown, sheet) ? { from: { of: 'variable', name: `_${count}`, form: 'result' }, sheet } : null
}

const ways: [RegExp, 'csv' | 'excel' | 'parquet'][] = [
  [/\.(csv|tsv|tab|txt)(\.(gz|bz2|xz|zip))?$/i, 'csv'],
  [/\.(xlsx|xlsm|xls|ods)$/i, 'excel'],
  [/\.(parquet|pq)$/i, 'parquet'],
]

/** How code reads a file that is looked at; null: a chart of it needs code of one's own. */
export function originOfFile(path: string, seen: Pick<Preview, 'separator' | 'encoding' | 'sheet'>): Origin | null {
  const read = ways.find(([ending]) => ending.test(path))?.[1]
  if (!read) return null
  return {
    of: 'file',
    path,
    read,
    ...(read === 'csv' && seen.separator ? { separator: seen.separator } : {}),
    ...(read === 'csv' && seen.encoding ? { encoding: seen.encoding } : {}),
    ...(read === 'excel' && seen.sheet ? { sheet: seen.sheet } : {}),
  }
}

/** The source of settings, as it is now. */
export async function sourceAgain(session: string, from: Origin): Promise<Source | null> {
  if (from.of === 'variable') {
    const sheet = await sheetIn(session, from.name)
    return sheet && { from, sheet }
  }
  const query = { path: from.path, limit: 100, ...(from.sheet ? { sheet: from.sheet } : {}) }
  const { table } = await data(client.GET('/sessions/{session}/preview', { params: { path: { session }, query } }))
  const sheet = table && sheetOf({ ...table, total: table.total ?? table.rows.length, name: 'file' })
  return sheet ? { from, sheet } : null
}

/** The columns of a source. Its index is one where it says more than the number of a row. */
export function choicesOf({ from, sheet }: Source): Choice[] {
  const kinds = kindsOf(sheet)
  const column = (c: number) => sheet.rows.map((r) => r[c] ?? null)
  // Dates are often there as text.
  const kindAt = (c: number) => (kinds[c] === 'text' && kindOf(column(c)) === 'date' ? 'date' : (kinds[c] ?? 'text'))
  const choices = sheet.names.map(
    (name, at): Choice => ({
      column: { at, name, named: isNamed(name, sheet.names) && sheet.moreColumns === 0 },
      kind: kindAt(at + 1),
      values: column(at + 1),
    }),
  )
  const index = column(0)
  if (from.of === 'file' || countsRows(sheet.indexName, index)) return choices
  if (from.of === 'variable' && (from.form === 'polars' || from.form === 'array')) return choices
  return [{ column: { at: -1, name: sheet.indexName, named: false }, kind: kindAt(0), values: index }, ...choices]
}
