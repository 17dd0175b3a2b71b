import { useQuery } from '@tanstack/react-query'
import { client, data } from '../../api/client'
import { ProblemBox } from '../../parts'
import { count } from '../../parts/format'
import { useWords } from '../../words'
import css from './admin.module.css'
import { byModel, quantile } from './answers'

/** How the answers of each model went in some days together. */
export function ByModel({ all, from, to }: { all: boolean; from: string; to: string }) {
  const w = useWords()
  const u = w.admin.usage
  const list = useQuery({
    queryKey: ['usage', 'models', from, to, all],
    queryFn: async () =>
      (await data(client.GET('/usage/models', { params: { query: { from, to, ...(all && { all }) } } }))).items,
  })
  if (list.error) return <ProblemBox error={list.error} onRetry={() => void list.refetch()} />
  const rows = byModel(list.data ?? [])
  if (!rows.length) return null
  const head = [u.turns, u.completed, u.repaired, u.failed, u.executions, u.failedSteps, u.installs]
  return (
    <section className={css.group}>
      <h2>{u.byModel}</h2>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be reached by keys */}
      <section className={css.box} aria-label={u.byModel} tabIndex={0}>
        <table className={css.table}>
          <thead>
            <tr>
              <th scope="col">{u.model}</th>
              {[...head, u.median, u.p95].map((h) => (
                <th key={h} scope="col" className={css.number}>
                  {h}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((r) => (
              <tr key={r.model}>
                <th scope="row" className={css.nowrap}>
                  <bdi>{r.model}</bdi>
                </th>
                {[r.turns, r.completed, r.repaired, r.failed, r.steps, r.failed_steps, r.installs].map((n, i) => (
                  <td key={head[i]} className={css.number}>
                    {count(n, w.lang)}
                  </td>
                ))}
                {[0.5, 0.95].map((part) => (
                  <td key={part} className={css.number}>
                    {u.within(quantile(r.within, part))}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </section>
  )
}
