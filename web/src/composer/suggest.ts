import { missing } from '../output/table'
import { plainName } from '../parts/format'
import type { Words } from '../words'

// Questions that fit the columns of tables, by rules alone: no model is asked. Names and cells come from files and from sandboxes.

export type Kind = 'number' | 'date' | 'group' | 'other'

/** What of a column the questions go by. */
export interface Column {
  name: string
  kind: Kind
  /** A value is missing in the rows that were looked at. */
  gaps: boolean
}

/** A file or a table of Python, as far as it was looked at. */
export interface Known {
  name: string
  columns: Column[]
}

const mostColumns = 50
const mostRows = 200
const longestName = 60
const mostGroups = 20
const longestGroup = 40
export const mostQuestions = 3

const number = /^[-+]?[$€£¥]?\d[\d.,]*(e[-+]?\d+)?\s?%?$/i
const date =
  /^(\d{4}[-/.]\d{1,2}([-/.]\d{1,2})?([ T]\d{1,2}:\d{2}.*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}|\d{4}年\d{1,2}月(\d{1,2}日)?)$/
const year = /^(1[89]|20)\d\d(\.0)?$/
const yearName = /(^|[\s_])year$|年份?$/i
// Numbers that nobody adds up or compares.
const idName =
  /^(id|index|idx|no\.?|nr|number|key|#|zip|postcode|phone|lat|latitude|lon|lng|longitude)$|[\s_](id|key|zip|code)$|[a-z]Id$|编号|序号|代码|邮编|电话|[经纬]度/i
const measureName =
  /revenue|sales|amount|total|profit|income|price|cost|value|score|收入|销售|金额|总|利润|价格|成本|分数/i

/** A name in a question, on one line, without marks that turn the direction of text. One that is too long to be named whole is ''. */
export function nameIn(name: string): string {
  const plain = plainName(name.slice(0, 4 * longestName))
    .replace(/[\p{C}\p{Z}\s]+/gu, ' ')
    .trim()
  if (plain.length > longestName) return ''
  return !plain || /^[\p{L}\p{M}\p{N}_.()%$€£¥ -]+$/u.test(plain) ? plain : `“${plain.replace(/[“”]/g, '')}”`
}

const counted = (values: readonly string[]) =>
  values.length > 4 && values.every((v, i) => i === 0 || Number(v) - Number(values[i - 1]) === 1)

function kindOf(name: string, values: readonly string[], type: string): Kind {
  const distinct = new Set(values).size
  if (distinct < 2) return 'other'
  if (/^(datetime|date|timestamp)/i.test(type) || values.every((v) => date.test(v))) return 'date'
  if (values.every((v) => number.test(v))) {
    if (yearName.test(name) && values.every((v) => year.test(v))) return 'date'
    return idName.test(name) || counted(values) ? 'other' : 'number'
  }
  const repeats = distinct < values.length || values.length <= mostGroups
  return repeats && distinct <= mostGroups && values.every((v) => v.length <= longestGroup) ? 'group' : 'other'
}

/** Columns by their names and first rows, and what the kernel calls their types. */
export function columnsOf(
  names: readonly string[],
  rows: readonly (readonly (string | null | undefined)[])[],
  types: readonly string[] = [],
): Column[] {
  const some = rows.slice(0, mostRows)
  return names.slice(0, mostColumns).flatMap((name, c) => {
    const shown = nameIn(name)
    if (!shown || /^unnamed: \d+$/i.test(name)) return []
    const cells = some.map((r) => r[c]?.trim() ?? null)
    const values = cells.filter((v): v is string => !missing(v))
    return [{ name: shown, kind: kindOf(name.trim(), values, types[c] ?? ''), gaps: values.length < cells.length }]
  })
}

type Say = Words['suggest']

function questionsOf(columns: readonly Column[], s: Say): string[] {
  const of = (kind: Kind) => columns.filter((c) => c.kind === kind).map((c) => c.name)
  const [[when], [group, second], all] = [of('date'), of('group'), of('number')]
  const most = all.find((n) => measureName.test(n)) ?? all[0]
  const [next] = all.filter((n) => n !== most)
  return [
    when && most && s.change(most),
    group && most && s.most(group, most),
    columns.some((c) => c.gaps) && s.missing,
    most && next && s.together(most, next),
    most && s.spread(most),
    group && s.rows(group),
    second && most && s.most(second, most),
  ].filter((q): q is string => !!q)
}

/** A column that two tables have, by which they can be put together. */
function joined([a, ...others]: readonly Known[], s: Say): string {
  for (const b of others)
    for (const { name } of a?.columns ?? [])
      if (b.columns.some((c) => c.name === name)) return s.join(nameIn(a?.name ?? ''), nameIn(b.name), name)
  return ''
}

const same = (text: string) => text.replace(/[\s.。?？]+/g, '').toLowerCase()

/** The few questions that fit best. What was asked already is not offered again. */
export function suggest(known: readonly Known[], s: Say, asked: readonly string[] = []): string[] {
  const tables = known.filter((k) => k.columns.length > 0)
  const [first] = tables.length ? tables : known
  if (!first) return []
  const name = nameIn(first.name)
  const specific = questionsOf(first.columns, s).map((q) => (tables.length > 1 && name ? s.of(name, q) : q))
  const all = [joined(tables, s), ...specific, ...(name ? [s.summary(name), s.notable(name)] : [])]
  const before = new Set(asked.map(same))
  return [...new Set(all)].filter((q) => q && !before.has(same(q))).slice(0, mostQuestions)
}
