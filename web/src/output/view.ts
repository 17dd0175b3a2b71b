import { useDeferredValue, useEffect, useMemo, useState, useSyncExternalStore } from 'react'
import { Pages, type Reader, type Trouble, troubleOf } from './pages'
import { kindsOf, type Sheet } from './sheet'
import { type Kind, kindOf, order, type Profile, profile, type Table, type Value } from './table'

/** What a grid shows: all rows at once, or those that were asked for. */
export interface View {
  /** Whether rows can be neither sorted nor filtered nor described. */
  fixed?: boolean
  /** The columns of the index first. */
  names: readonly string[]
  indexes: number
  kinds: readonly Kind[]
  total: { rows: number; columns: number }
  cutColumns: number
  /** Rows that match the filter. */
  count: number
  /** Rows of the whole, as far as sorting and filtering know them. */
  known: number
  gap: number | null
  row: (i: number) => readonly Value[] | undefined
  see: (first: number, last: number, beyond: boolean) => void
  rows: (from: number, to: number, signal: AbortSignal, each: Each) => Promise<void>
  profile: (column: number) => Known | null
  sort: Sort
  setSort: (sort: Sort) => void
  filter: string
  setFilter: (filter: string) => void
  /** The filter that the rows are of. */
  wanted: string
  asking: boolean
  trouble: Trouble | null
  retry: () => void
}

export type Sort = { column: number; down: boolean } | null
export type Each = (rows: (readonly Value[])[]) => void
/** A column in numbers, or why there are none. */
export type Known = { profile: Profile; partly: number } | { failed: string }

export function useLocal(table: Table, given?: readonly Kind[]): View {
  const indexes = table.index.length
  const names = useMemo(() => [...table.index, ...table.columns], [table])
  const all = useMemo(() => table.rows.map((r) => [...r.index, ...r.cells]), [table])
  const kinds = useMemo(() => given ?? names.map((_, c) => kindOf(all.map((r) => r[c] ?? ''))), [names, all, given])
  const [sort, setSort] = useState<Sort>(null)
  const [filter, setFilter] = useState('')
  const wanted = useDeferredValue(filter.trim().toLowerCase())
  const shown = useMemo(() => {
    const values = sort && all.map((r) => r[sort.column] ?? null)
    const sorted = sort && values ? order(values, kinds[sort.column] ?? 'text', sort.down) : all.map((_, i) => i)
    return wanted ? sorted.filter((i) => all[i]?.some((c) => c?.toLowerCase().includes(wanted))) : sorted
  }, [all, sort, wanted, kinds])
  // biome-ignore lint/correctness/useExhaustiveDependencies: they are of these rows
  const profiles = useMemo(() => new Map<number, Known>(), [all])
  return {
    names,
    indexes,
    kinds,
    total: table.total,
    cutColumns: table.cutColumns,
    count: shown.length,
    known: all.length,
    gap: !sort && !wanted ? table.gap : null,
    row: (i) => all[shown[i] ?? -1],
    see: () => {},
    rows: async (from, to, _, each) => each(shown.slice(from, to).map((i) => all[i] ?? [])),
    profile: (c) => {
      let known = profiles.get(c)
      if (!known) {
        const values = all.map((r) => r[c] ?? null)
        known = { profile: profile(values, kinds[c] ?? 'text'), partly: table.total.rows > all.length ? all.length : 0 }
        profiles.set(c, known)
      }
      return known
    },
    sort,
    setSort,
    filter,
    setFilter,
    wanted,
    asking: filter.trim().toLowerCase() !== wanted,
    trouble: null,
    retry: () => {},
  }
}

const filterOf = (typed: string) => typed.trim().slice(0, 200)
const filterWait = 350
const seeWait = 80

export function useRemote(sheet: Sheet, reader: Reader): View {
  const pages = useMemo(() => new Pages(reader, sheet), [reader, sheet])
  useSyncExternalStore(pages.subscribe, () => pages.version)
  const [sort, setSort] = useState<Sort>(null)
  const [filter, setFilter] = useState('')
  const profiles = useProfiles(pages)
  useEffect(() => () => pages.stop(), [pages])
  useEffect(() => {
    const to = {
      sort: sort ? (sort.column === 0 ? 'index' : String(sort.column - 1)) : '',
      descending: sort?.down ?? false,
      filter: filterOf(filter),
    }
    const soon = setTimeout(() => pages.ask(to), to.filter === pages.shown.filter ? 0 : filterWait)
    return () => clearTimeout(soon)
  }, [pages, sort, filter])
  const timer = useMemo(() => ({ id: undefined as ReturnType<typeof setTimeout> | undefined }), [])
  useEffect(() => () => clearTimeout(timer.id), [timer])
  const { shape } = pages
  const kinds = useMemo(() => kindsOf({ ...shape, rows: sheet.rows.length ? sheet.rows : shape.rows }), [shape, sheet])
  const names = useMemo(() => [shape.indexName, ...shape.names], [shape])
  return {
    fixed: reader.fixed ?? false,
    names,
    indexes: 1,
    kinds,
    total: { rows: sheet.total, columns: shape.names.length + shape.moreColumns },
    cutColumns: shape.moreColumns,
    count: pages.count,
    known: sheet.total,
    gap: null,
    row: (i) => pages.row(i),
    see: (first, last, beyond) => {
      clearTimeout(timer.id)
      timer.id = setTimeout(() => pages.see(first, last, beyond), seeWait)
    },
    rows: (from, to, signal, each) => pages.rows(from, to, signal, each),
    profile: profiles,
    sort,
    setSort,
    filter,
    setFilter,
    wanted: pages.shown.filter,
    // From the first letter on what is shown is not what is asked for.
    asking: pages.asking || (!pages.trouble && filterOf(filter) !== pages.shown.filter),
    trouble: pages.trouble,
    retry: () => pages.retry(),
  }
}

/** Profiles of columns, one after the other, when they are looked at. */
function useProfiles(pages: Pages): (column: number) => Known | null {
  const [, again] = useState(0)
  // biome-ignore lint/correctness/useExhaustiveDependencies: they are of this table
  const work = useMemo(
    () => ({ known: new Map<number, Known>(), line: [] as number[], busy: false, control: new AbortController() }),
    [pages],
  )
  useEffect(() => () => work.control.abort(), [work])
  const run = async () => {
    if (work.busy) return
    work.busy = true
    for (let c = work.line.shift(); c !== undefined && !work.control.signal.aborted; c = work.line.shift()) {
      try {
        work.known.set(c, knownOf(await pages.profile(c - 1, work.control.signal)))
      } catch (error) {
        work.known.set(c, { failed: troubleOf(error).text })
      }
      again((n) => n + 1)
    }
    work.busy = false
  }
  return (c) => {
    const known = work.known.get(c)
    if (!known && c > 0 && !work.line.includes(c)) {
      work.line.push(c)
      queueMicrotask(() => void run())
    }
    return known ?? null
  }
}

/** What the kernel says of a column, as the grid shows it. */
export function knownOf(from: unknown): Known {
  const p = (from ?? {}) as Record<string, unknown>
  const n = (v: unknown) => (typeof v === 'number' && Number.isFinite(v) ? v : 0)
  const t = (v: unknown) => (typeof v === 'number' || typeof v === 'string' ? String(v).slice(0, 100) : '')
  const bars = Array.isArray(p.bars) ? p.bars : Array.isArray(p.common) ? p.common.map((c) => c?.count) : []
  const edges = Array.isArray(p.edges) ? p.edges : []
  const first = Array.isArray(p.common) ? p.common[0] : null
  const times = n(first?.count)
  const looked = Math.max(1, n(p.looked_at) || n(p.rows))
  return {
    profile: {
      kind: 'text',
      type: t(p.type),
      missing: n(p.missing),
      distinct: n(p.distinct),
      min: t(p.min ?? edges[0]),
      max: t(p.max ?? edges.at(-1)),
      bars: bars.slice(0, 40).map(n),
      ...(first ? { top: { value: t(first.value), part: times > 1 ? Math.min(1, times / looked) : 0 } } : {}),
    },
    partly: n(p.looked_at) < n(p.rows) ? n(p.looked_at) : 0,
  }
}
