import { useQuery } from '@tanstack/react-query'
import { Download } from 'lucide-react'
import { useState } from 'react'
import { type Caller, client, data } from '../../api/client'
import { Button, ProblemBox, Segments } from '../../parts'
import { bytes, count, day, money } from '../../parts/format'
import { useWords } from '../../words'
import css from './admin.module.css'
import { Bars, type Series } from './Bars'
import { ByModel } from './ByModel'
import { saveCsv } from './csv'
import { AdminSheet } from './Layout'
import { may } from './rights'
import { ByProject, UsageTable } from './UsageTable'
import { cellsOf, currencyOf, type Day, dayBefore, filled, headOf } from './usage'

const ranges = ['7', '30', '90'] as const

export function Usage({ who }: { who: Caller }) {
  const w = useWords()
  const u = w.admin.usage
  const [range, setRange] = useState<(typeof ranges)[number]>('30')
  const [key, setKey] = useState('')
  const [all, setAll] = useState(false)
  const days = Number(range)
  const keys = useQuery({
    queryKey: ['keys'],
    enabled: may(who, 'keys:manage'),
    queryFn: async () => (await data(client.GET('/keys'))).items,
  })
  const list = useQuery({
    queryKey: ['usage', range, key, all],
    placeholderData: (before) => before,
    queryFn: async () => {
      const now = Date.now()
      const query = { from: dayBefore(now, days - 1), to: dayBefore(now, 0), ...(all ? { all } : key ? { key } : {}) }
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
  const head = [w.usage.day, ...headOf(u)]
  return (
    <AdminSheet
      who={who}
      section="usage"
      title={w.admin.sections.usage}
      text={all ? u.textOfAll : u.text}
      actions={
        <>
          {may(who, 'server:manage') && (
            <Segments
              label={w.settings.project}
              value={all ? 'all' : 'mine'}
              options={[
                { id: 'mine', name: w.admin.audit.mine },
                { id: 'all', name: w.admin.audit.all },
              ]}
              onChange={(v) => setAll(v === 'all')}
            />
          )}
          <Segments
            label={u.range}
            value={range}
            options={ranges.map((id) => ({ id, name: u.days(Number(id)) }))}
            onChange={setRange}
          />
        </>
      }
    >
      {!all && !!keys.data?.length && (
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
          {all && <ByProject who={who} from={rows[0]?.day ?? ''} to={rows.at(-1)?.day ?? ''} />}
          <ByModel all={all} from={rows[0]?.day ?? ''} to={rows.at(-1)?.day ?? ''} />
          <details className={css.fold}>
            <summary>{u.table}</summary>
            <UsageTable
              label={u.table}
              first={w.usage.day}
              rows={[...rows].reverse().map((r) => ({ key: r.day, name: day(r.day, w.lang), used: r }))}
            />
          </details>
          <div className={css.after}>
            <Button
              onClick={() =>
                saveCsv(
                  `usage-${rows[0]?.day ?? ''}-${rows.at(-1)?.day ?? ''}.csv`,
                  [...head, ...(currency ? [u.cost, u.currency] : [])],
                  rows.map((r) => [
                    r.day,
                    ...cellsOf(r),
                    ...(currency ? [r.currency ? (r.cost ?? 0) : '', r.currency ?? ''] : []),
                  ]),
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
