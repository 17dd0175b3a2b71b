import { useQuery } from '@tanstack/react-query'
import { type Caller, client, data } from '../../api/client'
import { ProblemBox } from '../../parts'
import { bytes, count, money } from '../../parts/format'
import { useWords } from '../../words'
import css from './admin.module.css'
import { useNames } from './names'
import { cellsOf, currencyOf, headOf, type Used } from './usage'

export interface UsageRow {
  key: string
  name: string
  used: Used
}

/** What was used, a row for each day or project. first heads the column of their names. */
export function UsageTable({ label, first, rows }: { label: string; first: string; rows: readonly UsageRow[] }) {
  const w = useWords()
  const u = w.admin.usage
  const currency = currencyOf(rows.map((r) => r.used))
  const head = headOf(u)
  const shown = (n: number) => count(Number(n.toFixed(n < 10 ? 1 : 0)), w.lang)
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be reached by keys
    <section className={css.box} aria-label={label} tabIndex={0}>
      <table className={css.table}>
        <thead>
          <tr>
            <th scope="col">{first}</th>
            {[...head, ...(currency ? [u.cost] : [])].map((h) => (
              <th key={h} scope="col" className={css.number}>
                {h}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ key, name, used }) => (
            <tr key={key}>
              <th scope="row" className={css.nowrap}>
                <bdi>{name}</bdi>
              </th>
              {cellsOf(used).map((c, i) => (
                <td key={head[i]} className={css.number}>
                  {i === 6 ? bytes(c) : shown(c)}
                </td>
              ))}
              {currency && (
                <td className={css.number}>{used.currency ? money(used.cost ?? 0, used.currency, w.lang) : ''}</td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

/** What each project of the server has used in some days together. */
export function ByProject({ who, from, to }: { who: Caller; from: string; to: string }) {
  const w = useWords()
  const nameOf = useNames(who)
  const list = useQuery({
    queryKey: ['usage', 'projects', from, to],
    queryFn: async () => (await data(client.GET('/usage/projects', { params: { query: { from, to } } }))).items,
  })
  if (list.error) return <ProblemBox error={list.error} onRetry={() => void list.refetch()} />
  if (!list.data?.length) return null
  return (
    <section className={css.group}>
      <h2>{w.admin.usage.byProject}</h2>
      <UsageTable
        label={w.admin.usage.byProject}
        first={w.settings.project}
        rows={list.data.map((p) => ({ key: p.project, name: nameOf(p.project), used: p }))}
      />
    </section>
  )
}
