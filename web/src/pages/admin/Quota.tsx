import { useQuery } from '@tanstack/react-query'
import { type FormEvent, useId, useState } from 'react'
import { client, data, pages, type Session, type Stored } from '../../api/client'
import { asProblem, type Problem } from '../../api/problem'
import { Button, Dialog, ProblemBox, parts, toast } from '../../parts'
import { bytes, count } from '../../parts/format'
import { useWords, type Words } from '../../words'
import css from './admin.module.css'
import { type Limit, limits, type Quota, quotaOf, reachOf, rulesOf, shownLimit, unitOf } from './quota'
import { dayBefore } from './usage'

export function limitText(limit: Limit, n: number, w: Words): string {
  if (limit === 'disk_bytes') return bytes(n)
  if (limit === 'cpu_seconds_per_day')
    return w.admin.quota.hours(new Intl.NumberFormat(w.lang, { maximumFractionDigits: 2 }).format(n / 3600))
  return count(n, w.lang)
}

/** The limits of a project or a key in one line. */
export const quotaLine = (quota: Quota | undefined, w: Words): string =>
  [
    ...limits.flatMap((l) => (quota?.[l] ? [`${w.admin.quota.fields[l]} ${limitText(l, quota[l], w)}`] : [])),
    ...(quota?.network ? [`${w.admin.quota.network} ${reachOf(quota) || w.admin.quota.nowhere}`] : []),
  ].join(' · ')

/** What the caller's project uses now, as far as lists tell. */
export const useUsed = (enabled: boolean) =>
  useQuery({
    queryKey: ['used'],
    enabled,
    staleTime: 30_000,
    retry: false,
    queryFn: async (): Promise<Partial<Record<Limit, number>>> => {
      const today = dayBefore(Date.now(), 0)
      const page = (after: string | undefined) => ({ limit: 100, ...(after ? { after } : {}) })
      const [usage, running, sessions, files] = await Promise.all([
        data(client.GET('/usage', { params: { query: { from: today, to: today } } })),
        data(client.GET('/executions', { params: { query: { state: 'running', limit: 100 } } })),
        pages<Session>((after) => data(client.GET('/sessions', { params: { query: page(after) } }))),
        pages<Stored>((after) => data(client.GET('/files', { params: { query: page(after) } }))),
      ])
      const day = usage.items[0]
      return {
        live_sessions: sessions.filter((s) => s.state === 'active').length,
        concurrent_executions: running.items.length,
        cpu_seconds_per_day: day?.cpu_seconds ?? 0,
        tokens_per_day: (day?.input_tokens ?? 0) + (day?.output_tokens ?? 0),
        disk_bytes: [...sessions.map((s) => s.disk_bytes), ...files.map((f) => f.size)].reduce((a, b) => a + b, 0),
      }
    },
  })

/** The limits as facts, what is used beside them. */
export function QuotaFacts({
  quota,
  used,
  none,
}: {
  quota?: Quota
  used?: Partial<Record<Limit, number>>
  none: string
}) {
  const w = useWords()
  return (
    <dl className={css.facts}>
      {limits.map((l) => (
        <div key={l}>
          <dt>{w.admin.quota.fields[l]}</dt>
          <dd>
            {quota?.[l] ? limitText(l, quota[l], w) : none}
            {used && <small>{w.admin.quota.used(limitText(l, used[l] ?? 0, w))}</small>}
          </dd>
        </div>
      ))}
    </dl>
  )
}

/** A dialog that sets limits, in units of people. */
export function QuotaDialog({
  name,
  quota,
  text,
  onSave,
  onClose,
}: {
  name: string
  quota: Quota | undefined
  text: string
  onSave: (quota: Quota) => Promise<unknown>
  onClose: () => void
}) {
  const w = useWords()
  const q = w.admin.quota
  const id = useId()
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<Problem | string | null>(null)
  const save = async (next: Quota) => {
    setBusy(true)
    try {
      await onSave({ ...next, ...rulesOf(quota) })
      toast(Object.keys(next).length ? q.saved : q.cleared)
      onClose()
    } catch (error) {
      setProblem(asProblem(error))
    } finally {
      setBusy(false)
    }
  }
  const submit = (e: FormEvent<HTMLFormElement>) => {
    e.preventDefault()
    const form = new FormData(e.currentTarget)
    const next = quotaOf(Object.fromEntries(limits.map((l) => [l, String(form.get(l) ?? '')])))
    if (next) void save(next)
    else setProblem(q.bad)
  }
  return (
    <Dialog title={q.of(name)} onClose={onClose}>
      <form onSubmit={submit}>
        <p>{text}</p>
        {quota?.network && (
          <p>
            {q.network} {reachOf(quota) || q.nowhere}
          </p>
        )}
        {limits.map((l) => {
          const unit = unitOf(l)
          return (
            <div key={l}>
              <label className={parts.label} htmlFor={`${id}-${l}`}>
                {q.fields[l]}
              </label>
              <div className={css.unit}>
                <input
                  id={`${id}-${l}`}
                  name={l}
                  className={parts.field}
                  inputMode="decimal"
                  autoComplete="off"
                  defaultValue={shownLimit(l, quota?.[l])}
                />
                <span>{unit ? q.units[unit] : ''}</span>
              </div>
            </div>
          )
        })}
        {problem &&
          (typeof problem === 'string' ? (
            <p className={css.bad} role="alert">
              {problem}
            </p>
          ) : (
            <ProblemBox error={problem} />
          ))}
        <div className={parts.row}>
          <Button look="plain" disabled={busy} onClick={() => void save({})}>
            {q.clear}
          </Button>
          <Button onClick={onClose}>{w.cancel}</Button>
          <Button type="submit" look="primary" disabled={busy}>
            {w.save}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
