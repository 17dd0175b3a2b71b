import { useQuery } from '@tanstack/react-query'
import { Table2 } from 'lucide-react'
import { useEffect, useState, useSyncExternalStore } from 'react'
import { client, data, type Schemas } from '../api/client'
import { asProblem } from '../api/problem'
import { queries, useSession } from '../api/queries'
import { onStepOver } from '../events/live'
import { Button, Dialog, ProblemBox, parts } from '../parts'
import { bytes, plainName } from '../parts/format'
import { useWords } from '../words'
import css from './panels.module.css'
import { TableDialog } from './TableOf'

type Variable = Schemas['Variable']

const listen = (call: () => void) => {
  document.addEventListener('visibilitychange', call)
  return () => document.removeEventListener('visibilitychange', call)
}
const useVisible = () => useSyncExternalStore(listen, () => !document.hidden)

/** What the variables of a session are. To look wakes a session that is paused: that is asked before. */
export function Variables({ session }: { session: string }) {
  const w = useWords()
  const v = w.variables
  const known = useSession(session)
  const [woken, setWoken] = useState('')
  const state = known.data?.state
  if (known.error) return <ProblemBox error={known.error} onRetry={() => void known.refetch()} />
  if (!state) return <p className={css.quiet}>{w.loading}</p>
  if (state === 'lost' || state === 'deleted') return <p className={css.quiet}>{v.gone}</p>
  if (state === 'paused' && woken !== session)
    return (
      <>
        <p className={css.quiet}>{v.paused}</p>
        <div className={css.bar}>
          <Button onClick={() => setWoken(session)}>{v.wake}</Button>
        </div>
      </>
    )
  return <List key={session} session={session} />
}

function List({ session }: { session: string }) {
  const w = useWords()
  const v = w.variables
  const [kernel, setKernel] = useState('main')
  const [filter, setFilter] = useState('')
  const [open, setOpen] = useState<Variable | null>(null)
  const kernels = useQuery({
    queryKey: ['kernels', session],
    queryFn: () => data(client.GET('/sessions/{session}/kernels', { params: { path: { session } } })),
  })
  const visible = useVisible()
  const list = useQuery({
    queryKey: ['variables', session, kernel],
    enabled: visible,
    staleTime: 0,
    queryFn: () =>
      data(client.GET('/sessions/{session}/kernels/{kernel}/variables', { params: { path: { session, kernel } } })),
    retry: (n, error) => n < 2 && asProblem(error).status === 0,
    // While code runs the kernel answers nothing else.
    refetchInterval: (q) => (q.state.error && asProblem(q.state.error).code === 'session_busy' ? 2000 : false),
    // What code changed is told by its steps; a look at another window changes nothing.
    refetchOnWindowFocus: false,
  })
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout>
    const stop = onStepOver(() => {
      clearTimeout(timer)
      timer = setTimeout(() => void queries.invalidateQueries({ queryKey: ['variables', session] }), 300)
    })
    return () => {
      stop()
      clearTimeout(timer)
    }
  }, [session])
  const problem = list.error ? asProblem(list.error) : null
  const busy = problem?.code === 'session_busy'
  // An interpreter that was not begun yet has no variables.
  const none = problem?.code === 'kernel_not_found'
  const names = (kernels.data?.items ?? []).map((k) => k.name)
  const wanted = filter.trim().toLowerCase()
  const all = (list.data?.items ?? []).toReversed()
  const shown = all.filter(
    (x) => !wanted || x.name.toLowerCase().includes(wanted) || x.type.toLowerCase().includes(wanted),
  )
  return (
    <>
      {names.length > 1 && (
        <select
          className={parts.field}
          aria-label={v.kernel}
          value={kernel}
          onChange={(e) => setKernel(e.target.value)}
        >
          {names.map((n) => (
            <option key={n}>{n}</option>
          ))}
        </select>
      )}
      {all.length > 8 && (
        <input
          className={parts.field}
          type="search"
          aria-label={v.filter}
          placeholder={v.filter}
          value={filter}
          onChange={(e) => setFilter(e.target.value)}
        />
      )}
      {busy && (
        <p className={css.quiet} role="status">
          {v.busy}
        </p>
      )}
      {problem && !busy && !none && <ProblemBox error={problem} onRetry={() => void list.refetch()} />}
      {list.isPending && !problem && <p className={css.quiet}>{w.loading}</p>}
      {(none || (list.data && !all.length)) && <p className={css.quiet}>{v.empty}</p>}
      {!!all.length && !shown.length && <p className={css.quiet}>{v.noHits}</p>}
      <ul className={css.variables} data-old={busy || undefined}>
        {shown.map((x) => (
          <li key={x.name}>
            <button type="button" className={css.variable} onClick={() => setOpen(x)} aria-haspopup="dialog">
              <span>
                <bdi>{x.name}</bdi>
                {x.table && <Table2 size={14} aria-label={v.table} />}
                <small>{sizeOf(x, w.lang)}</small>
              </span>
              <span>
                <i>{x.type}</i>
                {x.preview && <code>{x.preview}</code>}
              </span>
            </button>
          </li>
        ))}
      </ul>
      {!!list.data?.more && <p className={css.quiet}>{v.more(list.data.more)}</p>}
      {open?.table && <TableDialog session={session} kernel={kernel} name={open.name} onClose={() => setOpen(null)} />}
      {open && !open.table && (
        <Dialog title={plainName(open.name)} onClose={() => setOpen(null)}>
          <Facts of={open} />
          <div className={parts.row}>
            <Button onClick={() => setOpen(null)}>{w.close}</Button>
          </div>
        </Dialog>
      )}
    </>
  )
}

const shapeOf = (x: Variable, lang: string) => x.shape?.map((n) => n.toLocaleString(lang)).join(' × ') ?? ''
const sizeOf = (x: Variable, lang: string) => shapeOf(x, lang) || (x.length?.toLocaleString(lang) ?? '')

function Facts({ of: x }: { of: Variable }) {
  const w = useWords()
  const v = w.variables
  const facts: [string, string][] = [
    [v.type, x.type],
    [v.shape, shapeOf(x, w.lang)],
    [v.length, x.length?.toLocaleString(w.lang) ?? ''],
    [v.size, x.bytes === undefined ? '' : bytes(x.bytes)],
  ]
  return (
    <>
      {x.preview && <pre className={css.preview}>{x.preview}</pre>}
      <dl className={css.facts}>
        {facts
          .filter(([, value]) => value)
          .map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
      </dl>
    </>
  )
}
