import { useId, useMemo, useState } from 'react'
import { Code } from '../output'
import { Button, parts } from '../parts'
import { plainName } from '../parts/format'
import { useWords } from '../words'
import { ChartColors } from './ChartColors'
import css from './chart.module.css'
import { generate, hasColor, hasX } from './generate'
import { asOf, type Choice, offered, withKind } from './guess'
import { type Column, longestTitle, mostSeries, type Settings, sorts, uses } from './settings'
import { choicesOf, type Source } from './source'

interface Props {
  source: Source
  start: Settings
  go: string
  busy: boolean
  working: boolean
  onDraw: (settings: Settings) => void
  onCancel: () => void
}

interface SelectProps {
  label: string
  value: string
  options: readonly (readonly [string, string])[]
  onChange: (value: string) => void
  autoFocus?: boolean
}

function Select({ label, value, options, onChange, autoFocus }: SelectProps) {
  const id = useId()
  return (
    <div className={css.field}>
      <label htmlFor={id}>{label}</label>
      <select
        id={id}
        className={parts.field}
        value={value}
        onChange={(e) => onChange(e.target.value)}
        // biome-ignore lint/a11y/noAutofocus: the person has just opened this
        autoFocus={autoFocus}
      >
        {options.map(([key, name]) => (
          <option key={key} value={key}>
            {name}
          </option>
        ))}
      </select>
    </div>
  )
}

interface ValuesProps {
  choices: readonly Choice[]
  nameOf: (c: Column) => string
  s: Settings
  set: (to: Partial<Settings>) => void
}

/** The columns of values: one of them, or several where the kind draws several. */
function Values({ choices, nameOf, s, set }: ValuesProps) {
  const c = useWords().charting
  const numbers = choices.filter((o) => o.kind === 'number')
  const others = choices.filter((o) => o.kind !== 'number')
  const all = [...numbers, ...others].filter((o) => o.column.at >= 0)
  const single = s.color !== null || s.kind === 'scatter' || s.kind === 'pie' || (s.kind === 'box' && s.x !== null)
  const label = s.kind === 'histogram' || s.kind === 'box' || s.kind === 'pie' ? c.values : c.y
  const columnAt = (at: string) => all.find((o) => String(o.column.at) === at)?.column
  if (single)
    return (
      <Select
        label={label}
        value={String(s.y[0]?.at ?? '')}
        options={[
          ...(s.y.length ? [] : [['', c.none] as const]),
          ...all.map((o) => [String(o.column.at), nameOf(o.column)] as const),
        ]}
        onChange={(at) => set({ y: [columnAt(at) ?? []].flat() })}
      />
    )
  return (
    <fieldset className={css.values}>
      <legend>{label}</legend>
      <div>
        {all.map(({ column }) => {
          const on = s.y.some((y) => y.at === column.at)
          return (
            <label key={column.at}>
              <input
                type="checkbox"
                checked={on}
                disabled={!on && s.y.length >= mostSeries}
                onChange={() => set({ y: on ? s.y.filter((y) => y.at !== column.at) : [...s.y, column] })}
              />
              <bdi>{nameOf(column)}</bdi>
            </label>
          )
        })}
      </div>
    </fieldset>
  )
}

/** Which columns are drawn, and how. What is shown as code is what runs. */
export function ChartForm({ source, start, go, busy, working, onDraw, onCancel }: Props) {
  const c = useWords().charting
  const w = useWords()
  const [s, setS] = useState(start)
  const choices = useMemo(() => choicesOf(source), [source])
  const nameOf = (col: Column) => plainName(col.name).slice(0, 80) || (col.at < 0 ? c.index : `${col.at + 1}`)
  const set = (to: Partial<Settings>) => setS((now) => ({ ...now, ...to }))
  const titled = useId()
  const columns = choices.map((o) => [String(o.column.at), nameOf(o.column)] as const)
  const find = (at: string) => choices.find((o) => String(o.column.at) === at)
  const optional = s.kind === 'box'
  const alone = s.kind === 'histogram' || s.kind === 'box' || s.kind === 'scatter'
  const counted = !alone && s.use === 'count'
  /** Along an axis of dates or numbers all values have their places. */
  const measured = (s.kind === 'line' || s.kind === 'area') && s.as !== 'text'
  const group = s.color !== null && (s.kind === 'bar' || s.kind === 'area')
  const lacking = !counted && !s.y.length ? c.yNone : ''
  if (!choices.length) return <p className={css.note}>{c.noColumns}</p>
  return (
    <form
      className={css.form}
      aria-label={c.panel}
      onSubmit={(e) => {
        e.preventDefault()
        if (!lacking && !busy && !working) onDraw({ ...s, title: s.title.trim() })
      }}
    >
      <div className={css.fields}>
        <Select
          label={c.kind}
          value={s.kind}
          options={offered(choices).map((k) => [k, c.kinds[k]] as const)}
          onChange={(k) => setS((now) => withKind(now, k as Settings['kind'], choices))}
          autoFocus
        />
        {hasX(s) && (
          <Select
            label={s.kind === 'pie' ? c.slices : optional ? c.boxes : c.x}
            value={String(s.x?.at ?? '')}
            options={optional ? [['', c.none] as const, ...columns] : columns}
            onChange={(at) => set({ x: find(at)?.column ?? null, as: asOf(find(at)) })}
          />
        )}
        {hasX(s) && s.x && (
          <Select
            label={c.as}
            value={s.as}
            options={(['date', 'number', 'text'] as const).map((f) => [f, c.forms[f]] as const)}
            onChange={(as) => set({ as: as as Settings['as'] })}
          />
        )}
        {!counted && <Values choices={choices} nameOf={nameOf} s={s} set={set} />}
        {!alone && (
          <Select
            label={c.use}
            value={group && s.use === 'none' ? 'sum' : s.use}
            options={uses.filter((u) => !(group && u === 'none')).map((u) => [u, c.uses[u]] as const)}
            onChange={(use) => set({ use: use as Settings['use'] })}
          />
        )}
        {hasColor(s) && (
          <Select
            label={c.color}
            value={String(s.color?.at ?? '')}
            options={[['', c.none] as const, ...columns]}
            onChange={(at) => set({ color: find(at)?.column ?? null, y: at ? s.y.slice(0, 1) : s.y })}
          />
        )}
        {(s.kind === 'bar' || s.kind === 'box' || s.as === 'text') &&
          hasX(s) &&
          s.kind !== 'pie' &&
          s.kind !== 'scatter' &&
          s.x && (
            <Select
              label={c.sort}
              value={s.sort}
              options={sorts.map((o) => [o, c.sorts[o]] as const)}
              onChange={(sort) => set({ sort: sort as Settings['sort'] })}
            />
          )}
        {hasX(s) && s.kind !== 'scatter' && !measured && s.x && (
          <Select
            label={c.top}
            value={String(s.top)}
            options={[...new Set([0, 5, 8, 10, 20, 50, 100, s.top])]
              .sort((a, b) => a - b)
              .map((n) => [String(n), n ? String(n) : c.all] as const)}
            onChange={(n) => set({ top: Number(n) })}
          />
        )}
        <div className={css.field}>
          <label htmlFor={titled}>{c.chartTitle}</label>
          <input
            id={titled}
            className={parts.field}
            value={s.title}
            maxLength={longestTitle}
            dir="auto"
            onChange={(e) => set({ title: e.target.value })}
          />
        </div>
      </div>
      <ChartColors s={s} source={source} choices={choices} set={set} />
      {source.sheet.moreColumns > 0 && <p className={css.note}>{c.cut(source.sheet.moreColumns)}</p>}
      <details className={css.code}>
        <summary>{c.code}</summary>
        <Code text={generate(s, c.said)} language="python" />
      </details>
      {(lacking || busy) && (
        <p className={css.note} role="status">
          {lacking || c.busy}
        </p>
      )}
      <div className={css.buttons}>
        <Button look="plain" onClick={onCancel}>
          {w.cancel}
        </Button>
        <Button look="primary" type="submit" disabled={!!lacking || busy || working} aria-busy={working || undefined}>
          {working ? c.drawing : go}
        </Button>
      </div>
    </form>
  )
}
