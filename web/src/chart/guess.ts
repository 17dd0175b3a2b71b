import type { Kind as Cells, Value } from '../output/table'
import { type As, type Column, type Kind, kinds, type Settings, type Use } from './settings'

/** A column that can be chosen, and what is in it. */
export interface Choice {
  column: Column
  kind: Cells
  /** Of its first rows. */
  values: readonly Value[]
}

/** What code without quotes around a name could mean by it: numbers, None, tuples, bytes and the like. Such a column is taken by its place. */
const maybeOther = /^(?:[\d.+\-(<[{]|b['"]|(?:True|False|None|nan|NaN|NaT|inf|<NA>)$|.*…$)/s

export function isNamed(name: string, all: readonly string[]): boolean {
  if (!name.trim() || name.length > 500 || maybeOther.test(name)) return false
  return all.indexOf(name) === all.lastIndexOf(name)
}

/** An index that only counts the rows says nothing. */
export function countsRows(name: string, values: readonly Value[]): boolean {
  return !name && values.every((v, i) => v === String(i))
}

const isId = (name: string) => /(^|[_\s-])(id|no|nr|key|index)$/i.test(name) || /[a-z]I[dD]$/.test(name)

export const asOf = (c: Choice | undefined): As =>
  c?.kind === 'date' ? 'date' : c?.kind === 'number' ? 'number' : 'text'

const isText = (c: Choice) => c.kind === 'text' || c.kind === 'bool'
const repeats = (c: Choice) => new Set(c.values).size < c.values.length

export type Guess = Pick<Settings, 'kind' | 'x' | 'as' | 'y' | 'use' | 'sort' | 'top'>

/** A chart that fits columns: over time, of sums by name, of two measures. */
export function guess(choices: readonly Choice[]): Guess {
  const date = choices.find((c) => c.kind === 'date')
  const numbers = choices.filter((c) => c.kind === 'number' && c.column.at >= 0)
  const measures = numbers.filter((c) => !isId(c.column.name))
  const values = measures.length ? measures : numbers
  const texts = choices.filter(isText)
  const text = texts.find((c) => c.column.at >= 0 && repeats(c)) ?? texts[0]
  const made = (
    kind: Kind,
    x: Choice | undefined,
    y: readonly Choice[],
    use: Use,
    more: Partial<Guess> = {},
  ): Guess => ({
    kind,
    x: x?.column ?? null,
    as: asOf(x),
    y: y.map((c) => c.column),
    use,
    sort: 'x',
    top: 0,
    ...more,
  })
  if (date && values.length) return made('line', date, values.slice(0, 1), 'sum')
  if (text && values.length) return made('bar', text, values.slice(0, 1), 'sum', { sort: 'down', top: 20 })
  if (values.length > 1) return made('scatter', values[0], values.slice(1, 2), 'none')
  if (values.length) return made('histogram', undefined, values.slice(0, 1), 'none')
  return made('bar', text ?? date ?? choices[0], [], 'count', { sort: 'down', top: 20 })
}

/** The kinds, those that fit columns first. */
export function offered(choices: readonly Choice[]): Kind[] {
  const has = (kind: Cells) => choices.some((c) => c.kind === kind)
  const numbers = choices.filter((c) => c.kind === 'number').length
  const first: Kind[] = []
  if (has('date') && numbers) first.push('line', 'area')
  if (choices.some(isText)) first.push('bar', 'pie')
  if (numbers > 1) first.push('scatter')
  if (numbers) first.push('histogram', 'box')
  return [...new Set([...first, ...kinds])]
}

/** Settings with another kind, in which what that kind needs is there. */
export function withKind(s: Settings, kind: Kind, choices: readonly Choice[]): Settings {
  const first = guess(choices)
  const numbers = choices.filter((c) => c.kind === 'number').map((c) => c.column)
  const next: Settings = { ...s, kind }
  const aloneBefore = s.kind === 'histogram' || s.kind === 'box' || s.kind === 'scatter'
  const alone = kind === 'histogram' || kind === 'box' || kind === 'scatter'
  if (alone && !next.y.length) next.y = numbers.slice(0, 1)
  if (kind === 'scatter' && next.as === 'text' && numbers.length > 1) {
    next.y = next.y.slice(0, 1)
    next.x = numbers.find((c) => c.at !== next.y[0]?.at) ?? next.x
    next.as = 'number'
  }
  if (!alone && aloneBefore) {
    next.use = next.y.length ? 'sum' : 'count'
    if (s.kind !== 'box' || !next.x) {
      next.x =
        choices.find((c) => (kind === 'bar' || kind === 'pie' ? isText(c) : c.kind === 'date'))?.column ??
        next.x ??
        first.x
      next.as = asOf(choices.find((c) => c.column.at === next.x?.at))
    }
  }
  if (!alone && !next.x) {
    next.x = first.x ?? choices[0]?.column ?? null
    next.as = asOf(choices.find((c) => c.column.at === next.x?.at))
  }
  return next
}
