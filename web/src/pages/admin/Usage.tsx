import { useQuery } from '@tanstack/react-query'
import { Download } from 'lucide-react'
import { useState } from 'react'
import { type Caller, client, data } from '../../api/client'
import { Button, ProblemBox, Segments } from '../../parts'
import { bytes, count, day, money } from '../../parts/format'
import { useWords } from '../../words'
import css from './admin.module.css'
import { Bars, type Series } from './Bars'
import { saveCsv } from './csv'
import { AdminSheet } from './Layout'
import { may } from './rights'
import { currencyOf, type Day, dayBefore, filled } from './usage'

const ranges = ['7', '30', '90'] as const

export function Usage({ who }: { who: Caller }) {
  const w = useWords()
  const u = w.admin.usage
  const [range, setRange] = useState<(typeof ranges)[number]>('30')
  const [key, setKey] = useState('')
  const days = Number(range)
  const keys = useQuery({
    queryKey: ['keys'],
    enabled: may(who, 'keys:manage'),
    queryFn: async () => (await data(client.GET('/keys'))).items,
  })
  const list = useQuery({
    queryKey: ['usage', range, key],
    placeholderData: (before) => before,
    queryFn: async () => {
      const now = Date.now()
      const query = { from: dayBefore(now, days - 1), to: dayBefore(now, 0), ...(key ? { key } : {}) }
      return filled((await data(client.GET('/usage', { params: { query } }))).items, days, now)
    },
  })
  const rows = list.data ?? []
  const currency = currencyOf(rows)
  const number = (n: number) => count(Number(n.toFixed(n < 10 ? 1 : 0)), w.lang)
  const series = (title: string, values: (r: Day) => number[], text = number): Series => ({
    title,
    days: rows.map((r) => r.day),
    values: rows.map(values),
    text,
  })
  const plots = [
    series(u.turns, (r) => [r.turns]),
    series(u.executions, (r) => [r.executions]),
    series(u.cpu, (r) => [r.cpu_seconds]),
    series(u.tokens, (r) => [r.input_tokens, r.output_tokens]),
    series(u.uploads, (r) => [r.upload_bytes], bytes),
  ]
  if (currency) {
    const own = (r: Day) => [r.currency === currency ? (r.cost ?? 0) : 0]
    plots.push(series(u.cost, own, (n) => money(n, currency, w.lang)))
  }
  const head = [w.usage.day, u.turns, u.executions, u.cpu, u.wall, u.input, u.output, u.uploads]
  const cells = (r: Day) => [
    r.turns,
    r.executions,
    Number(r.cpu_seconds.toFixed(3)),
    Number(r.wall_seconds.toFixed(3)),
    r.input_tokens,
    r.output_tokens,
    r.upload_bytes,
  ]
  const costHead = currency ? [u.cost, u.currency] : []
  const costCells = (r: Day) => (currency ? [r.currency ? (r.cost ?? 0) : '', r.currency ?? ''] : [])
  return (
    <AdminSheet
      who={who}
      section="usage"
      title={w.admin.sections.usage}
      text={u.text}
      actions={
        <Segments
          label={u.range}
          value={range}
          options={ranges.map((id) => ({ id, name: u.days(Number(id)) }))}
          onChange={setRange}
        />
      }
    >
      {!!keys.data?.length && (
        <select className={css.select} aria-label={w.admin.key} value={key} onChange={(e) => setKey(e.target.value)}>
          <option value="">{u.allKeys}</option>
          {keys.data.map((k) => (
            <option key={k.id} value={k.id}>
              {`${k.name} …${k.last4}${k.revoked_at ? ` (${w.keys.revoked})` : ''}`}
            </option>
          ))}
        </select>
      )}
      {list.error && <ProblemBox error={list.error} onRetry={() => void list.refetch()} />}
      {list.isPending && <p className={css.quiet}>{w.loading}</p>}
      {list.data && (
        <>
          <div className={css.plots} aria-busy={list.isPlaceholderData}>
            {plots.map((p) => (
              <Bars key={p.title} {...p} />
            ))}
          </div>
          <details className={css.fold}>
            <summary>{u.table}</summary>
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be reached by keys */}
            <section className={css.box} aria-label={u.table} tabIndex={0}>
              <table className={css.table}>
                <thead>
                  <tr>
                    {head.map((h, i) => (
                      <th key={h} scope="col" className={i ? css.number : ''}>
                        {h}
                      </th>
                    ))}
                    {currency && (
                      <th scope="col" className={css.number}>
                        {u.cost}
                      </th>
                    )}
                  </tr>
                </thead>
                <tbody>
                  {[...rows].reverse().map((r) => (
                    <tr key={r.day}>
                      <th scope="row" className={css.nowrap}>
                        {day(r.day, w.lang)}
                      </th>
                      {cells(r).map((c, i) => (
                        <td key={head[i + 1]} className={css.number}>
                          {i === 6 ? bytes(c) : number(c)}
                        </td>
                      ))}
                      {currency && (
                        <td className={css.number}>{r.currency ? money(r.cost ?? 0, r.currency, w.lang) : ''}</td>
                      )}
                    </tr>
                  ))}
                </tbody>
              </table>
            </section>
          </details>
          <div className={css.after}>
            <Button
              onClick={() =>
                saveCsv(
                  `usage-${rows[0]?.day ?? ''}-${rows.at(-1)?.day ?? ''}.csv`,
                  [...head, ...costHead],
                  rows.map((r) => [r.day, ...cells(r), ...costCells(r)]),
                )
              }
            >
              <Download size={15} aria-hidden />
              {w.admin.csv}
            </Button>
          </div>
        </>
      )}
    </AdminSheet>
  )
}
