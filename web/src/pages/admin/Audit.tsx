import { useInfiniteQuery } from '@tanstack/react-query'
import { Download } from 'lucide-react'
import { Fragment, type ReactNode, useDeferredValue, useState } from 'react'
import { type Caller, client, data } from '../../api/client'
import { Button, ProblemBox, Segments } from '../../parts'
import { moment } from '../../parts/format'
import { useWords } from '../../words'
import css from './admin.module.css'
import { askedOf, type Filter, fits, isSet, noFilter, type Row } from './audit'
import { saveCsv } from './csv'
import { AdminSheet } from './Layout'
import { useNames } from './names'
import { may } from './rights'

const fields = [
  'at',
  'user',
  'key',
  'project',
  'action',
  'target',
  'outcome',
  'detail',
  'request',
  'ip',
  'agent',
  'id',
] as const
const details = ['id', 'project', 'user', 'key', 'target', 'detail', 'request', 'ip', 'agent'] as const

function Field({ name, children }: { name: string; children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: the control is in it
    <label>
      {name}
      {children}
    </label>
  )
}

function Filters({ filter: f, onChange }: { filter: Filter; onChange: (change: Partial<Filter>) => void }) {
  const a = useWords().admin.audit
  return (
    <div className={css.filters}>
      <Field name={a.who}>
        <input type="search" placeholder={a.anyWho} value={f.who} onChange={(e) => onChange({ who: e.target.value })} />
      </Field>
      <Field name={a.what}>
        <input
          type="search"
          placeholder={a.anyWhat}
          value={f.what}
          onChange={(e) => onChange({ what: e.target.value })}
        />
      </Field>
      <Field name={a.from}>
        <input type="date" value={f.from} onChange={(e) => onChange({ from: e.target.value })} />
      </Field>
      <Field name={a.to}>
        <input type="date" value={f.to} onChange={(e) => onChange({ to: e.target.value })} />
      </Field>
      <Field name={a.result}>
        <select value={f.result} onChange={(e) => onChange({ result: e.target.value as Filter['result'] })}>
          <option value="">{a.any}</option>
          <option value="ok">{a.ok}</option>
          <option value="refused">{a.refused}</option>
        </select>
      </Field>
    </div>
  )
}

function Item({ row, nameOf }: { row: Row; nameOf: (id: string) => string }) {
  const w = useWords()
  const a = w.admin.audit
  const [open, setOpen] = useState(false)
  return (
    <>
      <tr>
        <td className={css.nowrap}>
          <button
            type="button"
            className={css.unfold}
            aria-expanded={open}
            title={a.details}
            onClick={() => setOpen(!open)}
          >
            <time dateTime={row.at}>{moment(row.at, w.lang)}</time>
          </button>
        </td>
        <td>
          <bdi>{nameOf(row.user)}</bdi>
        </td>
        <td>
          <code>{row.action}</code>
        </td>
        <td className={`${css.nowrap} ${row.outcome === 'ok' ? '' : css.bad}`}>
          {row.outcome === 'ok' ? a.ok : row.outcome}
        </td>
      </tr>
      {open && (
        <tr>
          <td colSpan={4}>
            <dl className={css.details}>
              {details.map((d) =>
                row[d] ? (
                  <Fragment key={d}>
                    <dt>{a.fields[d]}</dt>
                    <dd>{nameOf(row[d]) === row[d] ? row[d] : `${nameOf(row[d])} (${row[d]})`}</dd>
                  </Fragment>
                ) : null,
              )}
            </dl>
          </td>
        </tr>
      )}
    </>
  )
}

export function Audit({ who }: { who: Caller }) {
  const w = useWords()
  const a = w.admin.audit
  const rules = may(who, 'server:manage')
  const nameOf = useNames(who)
  const [all, setAll] = useState(false)
  const [filter, setFilter] = useState<Filter>(noFilter)
  const wanted = useDeferredValue(filter)
  const list = useInfiniteQuery({
    queryKey: ['audit', all, filter.from, filter.to, filter.result],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam }) =>
      data(
        client.GET('/audit', {
          params: {
            query: {
              limit: isSet(filter) ? 1000 : 100,
              ...askedOf(filter),
              ...(all ? { all } : {}),
              ...(pageParam ? { after: pageParam } : {}),
            },
          },
        }),
      ),
    getNextPageParam: (page) => page.next,
  })
  const rows = list.data?.pages.flatMap((p) => p.items) ?? []
  const shown = rows.filter((r) => fits(r, wanted, nameOf))
  return (
    <AdminSheet
      who={who}
      section="audit"
      title={w.admin.sections.audit}
      text={a.text}
      actions={
        rules && (
          <Segments
            label={w.settings.project}
            value={all ? 'all' : 'mine'}
            options={[
              { id: 'mine', name: a.mine },
              { id: 'all', name: a.all },
            ]}
            onChange={(v) => setAll(v === 'all')}
          />
        )
      }
    >
      <Filters filter={filter} onChange={(change) => setFilter({ ...filter, ...change })} />
      {list.error && <ProblemBox error={list.error} onRetry={() => void list.refetch()} />}
      {list.isPending && <p className={css.quiet}>{w.loading}</p>}
      {list.data && (
        <>
          <p className={css.quiet} role="status">
            {rows.length ? (shown.length ? a.shown(shown.length, rows.length) : a.none) : a.empty}
          </p>
          {shown.length > 0 && (
            // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be reached by keys
            <section className={css.box} aria-label={w.admin.sections.audit} tabIndex={0}>
              <table className={css.table}>
                <thead>
                  <tr>
                    <th scope="col">{a.fields.at}</th>
                    <th scope="col">{a.who}</th>
                    <th scope="col">{a.what}</th>
                    <th scope="col">{a.result}</th>
                  </tr>
                </thead>
                <tbody>
                  {shown.map((r) => (
                    <Item key={r.id} row={r} nameOf={nameOf} />
                  ))}
                </tbody>
              </table>
            </section>
          )}
          <div className={css.after}>
            {list.hasNextPage && (
              <Button disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
                {a.older}
              </Button>
            )}
            {shown.length > 0 && (
              <Button
                onClick={() =>
                  saveCsv(
                    'audit.csv',
                    [...fields],
                    shown.map((r) => fields.map((f) => r[f] ?? '')),
                  )
                }
              >
                <Download size={15} aria-hidden />
                {w.admin.csv}
              </Button>
            )}
          </div>
        </>
      )}
    </AdminSheet>
  )
}
