import { useQuery } from '@tanstack/react-query'
import { use, useId } from 'react'
import { readerOf } from '../panels/tables'
import { Button, parts } from '../parts'
import { plainName } from '../parts/format'
import { useWords } from '../words'
import css from './chart.module.css'
import { colorsOf } from './generate'
import type { Choice } from './guess'
import { ChartSessionContext } from './run'
import { mostSeries, palettes, type Settings } from './settings'
import { kernel, type Source } from './source'

interface Props {
  s: Settings
  source: Source
  choices: readonly Choice[]
  set: (to: Partial<Settings>) => void
}

/** The column whose values are series of their own. */
const splitBy = (s: Settings) => (s.kind === 'pie' ? s.x : s.kind === 'box' ? null : s.color)

/** The most frequent values of a column, which are the series that a chart has: as Python counts them, or else of the first rows. */
function useGroups(s: Settings, source: Source, choices: readonly Choice[]): string[] {
  const session = use(ChartSessionContext)
  const by = splitBy(s)
  const { from } = source
  const asks = !!session && !!by && by.at >= 0 && from.of === 'variable'
  const profile = useQuery({
    queryKey: ['chart-groups', session, from.of === 'variable' ? from.name : '', by?.at],
    enabled: asks,
    gcTime: 0,
    retry: false,
    refetchOnWindowFocus: false,
    queryFn: ({ signal }) =>
      readerOf(session ?? '', kernel).profile(from.of === 'variable' ? from.name : '', by?.at ?? 0, signal),
  })
  if (!by) return []
  const common = (profile.data as { common?: { value?: unknown }[] } | null | undefined)?.common
  if (Array.isArray(common)) return common.flatMap((v) => (typeof v?.value === 'string' ? v.value : []))
  const counts = new Map<string, number>()
  for (const v of choices.find((o) => o.column.at === by.at)?.values ?? [])
    if (v !== null) counts.set(v, (counts.get(v) ?? 0) + 1)
  return [...counts].sort((a, b) => b[1] - a[1]).map(([v]) => v)
}

/** A palette, and a colour for each series that has a name. */
export function ChartColors({ s, source, choices, set }: Props) {
  const c = useWords().charting
  const own = useId()
  const groups = useGroups(s, source, choices)
  const alone = s.kind === 'histogram' || s.kind === 'box' || s.kind === 'scatter'
  const counted = !alone && s.use === 'count'
  const names = splitBy(s) ? groups : counted ? [c.said.count] : s.y.map((y) => y.name.trim() || `${y.at + 1}`)
  const series = [...new Set(names)].slice(0, mostSeries)
  const colors = colorsOf(s.palette)
  const change = (name: string, color: string | null) => {
    const { [name]: _, ...rest } = s.colors
    set({ colors: color ? { ...rest, [name]: color } : rest })
  }
  return (
    <div className={css.colors}>
      <div className={css.field}>
        <label htmlFor={own}>{c.palette}</label>
        <select
          id={own}
          className={parts.field}
          value={s.palette}
          onChange={(e) => set({ palette: e.target.value as Settings['palette'] })}
        >
          {palettes.map((p) => (
            <option key={p} value={p}>
              {c.palettes[p]}
            </option>
          ))}
        </select>
      </div>
      {series.length > 0 && (
        <fieldset className={css.series}>
          <legend>{c.single}</legend>
          <div>
            {series.map((name, i) => (
              <label key={name}>
                <input
                  type="color"
                  value={(s.colors[name] ?? colors[i % colors.length] ?? '#000000').toLowerCase()}
                  onChange={(e) => change(name, e.target.value)}
                />
                <bdi>{plainName(name).slice(0, 40)}</bdi>
              </label>
            ))}
          </div>
          {Object.keys(s.colors).length > 0 && (
            <Button look="plain" onClick={() => set({ colors: {} })}>
              {c.reset}
            </Button>
          )}
        </fieldset>
      )}
    </div>
  )
}
