import { useLayoutEffect, useMemo, useState } from 'react'
import { measure } from './gridMath'
import { type Kind, missing, short, type Value } from './table'
import type { View } from './view'

// How wide the columns of a grid are and how their numbers are written: by all values that were seen, and wider with each that needs more.

const digit = 8.3 // pixels of a digit in the widest font that the page has
const sides = 25
const arrow = 18
const least = 52
const mostText = 320
const mostDigits = 44
/** As pandas writes them. What is copied has all digits. */
export const mostDecimals = 6

/** What a column has been seen to need. */
export interface Seen {
  /** Characters before the point, with the sign. */
  whole: number
  decimals: number
  /** The largest amount. */
  most: number
  /** Width of the longest value that is not a plain number, in characters. */
  longest: number
}

export const nothingSeen: Seen = { whole: 0, decimals: 0, most: 0, longest: 0 }

const plainly = /^([+-]?\d{1,15})(?:\.(\d+))?$/

export function lookAt(seen: Seen, value: Value, kind: Kind): Seen {
  const text = value ?? ''
  const parts = kind === 'number' && !missing(value) ? plainly.exec(short(text, kind)) : null
  if (!parts) {
    const longest = measure(short(value, kind))
    return longest > seen.longest ? { ...seen, longest } : seen
  }
  const [, whole = '', fraction = ''] = parts
  const now = {
    whole: Math.max(seen.whole, whole.length),
    decimals: Math.max(seen.decimals, Math.min(mostDecimals, fraction.length)),
    most: Math.max(seen.most, Math.abs(Number(whole))),
    longest: Math.max(seen.longest, tiny(text) ? tinyText(text).length : 0),
  }
  return (Object.keys(now) as (keyof Seen)[]).some((k) => now[k] !== seen[k]) ? now : seen
}

/** Fixed decimals would leave little or nothing of such a number. */
function tiny(text: string): boolean {
  const n = Math.abs(Number(text))
  return n > 0 && n < 10 ** (3 - mostDecimals) && Number(n.toFixed(mostDecimals)) !== n
}

const tinyText = (text: string) => String(Number(Number(text).toPrecision(4)))

/** Numbers that name something, and are not amounts. */
const names =
  /(^|[\s_.-])(ids?|year|yr|zip|plz|codes?|postcode|phone|tel|isbn|nr|no)$|(年|年份|编号|号|邮编|电话|代码)$/i
const camel = /[a-z]I[dD]$/

export const groups = (name: string, seen: Seen): boolean =>
  seen.most >= 10_000 && !names.test(name) && !camel.test(name)

/** A number with as many decimals as the others of its column, so that the points are in one line. */
export function numberText(value: string, seen: Seen, grouped: boolean): string {
  const parts = plainly.exec(short(value, 'number'))
  if (!parts) return short(value, 'number')
  if (tiny(value)) return tinyText(value)
  const exact = plainly.exec(value)
  const text = (exact?.[2]?.length ?? 0) > seen.decimals || !exact ? Number(value).toFixed(seen.decimals) : value
  const [whole = '', fraction = ''] = text.split('.')
  const left = grouped ? whole.replace(/\B(?=(\d{3})+$)/g, ',') : whole
  return seen.decimals > 0 ? `${left}.${fraction.padEnd(seen.decimals, '0')}` : left
}

/** Width of what was seen, in pixels, without a bound. */
export function wide(seen: Seen, kind: Kind, grouped: boolean): number {
  const marks = grouped ? Math.floor((seen.whole - 1) / 3) : 0
  const number = seen.whole > 0 ? seen.whole + marks + (seen.decimals > 0 ? seen.decimals + 1 : 0) : 0
  return (kind === 'number' ? Math.max(number, Math.min(seen.longest, mostDigits)) : seen.longest) * digit + sides
}

let canvas: OffscreenCanvasRenderingContext2D | null | undefined

function nameWidth(name: string): number {
  const text = name.slice(0, 60)
  if (canvas === undefined)
    canvas = typeof OffscreenCanvas === 'undefined' ? null : new OffscreenCanvas(1, 1).getContext('2d')
  if (!canvas) return measure(text) * 9.4
  canvas.font = `600 13px ${getComputedStyle(document.body).fontFamily}`
  return Math.ceil(canvas.measureText(text).width) + 1
}

interface Known {
  names: readonly string[]
  kinds: readonly Kind[]
  seen: readonly Seen[]
  /** Rows that were looked at. Each is looked at once: what a grid costs goes by the cells of new rows. */
  rows: WeakSet<readonly Value[]>
}

function look(known: Known, view: View, first: number, last: number): Known {
  const fresh: (readonly Value[])[] = []
  for (let i = first; i <= last; i++) {
    const row = view.row(i)
    if (!row || known.rows.has(row)) continue
    known.rows.add(row)
    fresh.push(row)
  }
  if (!fresh.length) return known
  const seen = [...known.seen]
  let changed = false
  const add = (c: number, value: Value) => {
    const before = seen[c] ?? nothingSeen
    const now = lookAt(before, value, view.kinds[c] ?? 'text')
    if (now !== before) changed = true
    seen[c] = now
  }
  for (const row of fresh) for (let c = 0; c < view.names.length; c++) add(c, row[c] ?? null)
  return changed ? { ...known, seen } : known
}

function begin(view: View): Known {
  const { names, kinds, indexes, total } = view
  const start: Known = { names, kinds, seen: names.map(() => nothingSeen), rows: new WeakSet() }
  const known = look(start, view, 0, Math.min(view.count, 100) - 1)
  // The index of rows that are not here yet is as long as their number.
  const seen = known.seen.map((s, c) =>
    c < indexes && kinds[c] === 'number' ? { ...s, whole: Math.max(s.whole, String(total.rows).length) } : s,
  )
  return { ...known, seen }
}

const keyOf = (c: number, name: string) => `${c} ${name}`

/** The left edge of each column, and the width of all. */
export function edgesOf(widths: readonly number[]): { lefts: number[]; total: number } {
  let total = 0
  const lefts = widths.map((width) => {
    total += width
    return total - width
  })
  return { lefts, total }
}

/** The columns of a grid. `see` widens them by the rows that are in sight; a width that somebody drags stays. */
export function useColumns(view: View, profiled: boolean, grouping: boolean) {
  const { names, indexes, kinds } = view
  // biome-ignore lint/correctness/useExhaustiveDependencies: anew for other columns only
  const first = useMemo(() => begin(view), [names, kinds])
  const [grown, setGrown] = useState(first)
  const known = grown.names === names && grown.kinds === kinds ? grown : first
  const [dragged, setDragged] = useState<ReadonlyMap<string, number>>(new Map())
  const heads = useMemo(() => names.map((name) => nameWidth(name) + arrow + sides), [names])
  const large = useMemo(
    () => names.map((name, c) => c >= indexes && kinds[c] === 'number' && groups(name, known.seen[c] ?? nothingSeen)),
    [names, indexes, kinds, known],
  )
  const fits = useMemo(
    () =>
      names.map((_, c) =>
        Math.max(
          least,
          heads[c] ?? 0,
          wide(known.seen[c] ?? nothingSeen, kinds[c] ?? 'text', grouping && (large[c] ?? false)),
        ),
      ),
    [names, kinds, heads, known, large, grouping],
  )
  const widths = useMemo(
    () =>
      names.map((name, c) => {
        const set = dragged.get(keyOf(c, name))
        if (set !== undefined) return set
        const auto = kinds[c] === 'number' ? (fits[c] ?? least) : Math.min(mostText, fits[c] ?? least)
        return profiled && c >= indexes ? Math.max(136, auto) : auto
      }),
    [names, kinds, indexes, fits, dragged, profiled],
  )
  const see = (from: number, to: number) => {
    const next = look(known, view, from, to)
    if (next !== known) setGrown(next)
  }
  const drag = (c: number, width: number) =>
    setDragged(new Map(dragged).set(keyOf(c, names[c] ?? ''), Math.round(Math.max(40, Math.min(1200, width)))))
  const text = (c: number, value: string) => {
    const kind = kinds[c] ?? 'text'
    return kind === 'number' && c >= indexes && !missing(value)
      ? numberText(value, known.seen[c] ?? nothingSeen, grouping && (large[c] ?? false))
      : short(value, kind)
  }
  const hasLarge = useMemo(() => large.includes(true), [large])
  return { widths, see, drag, fit: (c: number) => drag(c, fits[c] ?? least), text, hasLarge }
}

export type Columns = ReturnType<typeof useColumns>

/** Widens the columns by what is in sight, before it is painted. */
export function useSeen(columns: Columns, first: number, last: number) {
  useLayoutEffect(() => columns.see(first, last))
}
