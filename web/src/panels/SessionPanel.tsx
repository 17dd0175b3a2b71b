import { GitFork, Pause, Play, RotateCcw } from 'lucide-react'
import { useState } from 'react'
import { useLocation } from 'wouter'
import { client, data, once } from '../api/client'
import { refresh, useSession } from '../api/queries'
import { ask, Button, complain, ProblemBox, toast } from '../parts'
import { bytes, day, moment } from '../parts/format'
import { useWords, type Words } from '../words'
import css from './panels.module.css'

/** Begins a new interpreter, after saying what goes, and says whether it did. */
export async function restartPython(session: string, w: Words, all = false): Promise<boolean> {
  const n = w.notebook
  const go = all ? n.restartAll : n.restart
  if ((await ask({ title: go, text: n.restartText, go, bad: true })) === null) return false
  try {
    await data(
      client.POST('/sessions/{session}/kernels/{kernel}/restart', { params: { path: { session, kernel: 'main' } } }),
    )
    if (!all) toast(n.restarted)
    refresh({ session })
    return true
  } catch (error) {
    complain(error)
    return false
  }
}

export async function changeState(session: string, to: 'pause' | 'resume') {
  try {
    const params = { params: { path: { session } } }
    await (to === 'pause'
      ? data(client.POST('/sessions/{session}/pause', params))
      : data(client.POST('/sessions/{session}/resume', params)))
  } catch (error) {
    complain(error)
  }
  refresh({ session })
}

export function State({ state }: { state: string }) {
  const w = useWords()
  return (
    <span className={css.state} data-state={state}>
      {w.panels.states[state] ?? state}
    </span>
  )
}

/** A second session that goes on from the variables and files of this one, as a notebook. */
function Fork({ session, disabled }: { session: string; disabled: boolean }) {
  const w = useWords()
  const [, navigate] = useLocation()
  const [busy, setBusy] = useState(false)
  const fork = async () => {
    setBusy(true)
    try {
      const made = await data(
        client.POST('/sessions/{session}/fork', {
          params: { path: { session }, header: once() },
          body: {},
        }),
      )
      toast(w.panels.forked)
      navigate(`/s/${made.id}`)
    } catch (error) {
      complain(error)
    } finally {
      setBusy(false)
    }
  }
  return (
    <Button onClick={() => void fork()} disabled={disabled || busy}>
      <GitFork size={14} aria-hidden />
      {w.panels.fork}
    </Button>
  )
}

export function SessionPanel({ session }: { session: string }) {
  const w = useWords()
  const { data: s, error, refetch } = useSession(session)
  if (error) return <ProblemBox error={error} onRetry={() => void refetch()} />
  if (!s) return <p className={css.quiet}>{w.loading}</p>
  const facts: [string, string][] = [
    [
      w.panels.memory,
      s.memory_used_bytes
        ? w.panels.ofMemory(bytes(s.memory_used_bytes), bytes(s.memory_bytes))
        : w.panels.upTo(bytes(s.memory_bytes)),
    ],
    [w.panels.processors, String(s.cpus)],
    [w.panels.disk, s.disk_bytes ? bytes(s.disk_bytes) : '—'],
    [w.panels.ran, String(s.executions)],
    [w.panels.made, moment(s.created_at, w.lang)],
    [w.panels.used, moment(s.used_at, w.lang)],
    [w.panels.saved, s.saved_at ? moment(s.saved_at, w.lang) : '—'],
    ...(s.expires_at ? [[w.panels.expires, day(s.expires_at, w.lang)] as [string, string]] : []),
  ]
  return (
    <>
      <div className={css.bar}>
        {s.state === 'active' && (
          <Button onClick={() => void changeState(session, 'pause')}>
            <Pause size={14} aria-hidden />
            {w.panels.pause}
          </Button>
        )}
        {s.state === 'paused' && (
          <Button onClick={() => void changeState(session, 'resume')}>
            <Play size={14} aria-hidden />
            {w.panels.resume}
          </Button>
        )}
        <Button onClick={() => void restartPython(session, w)} disabled={s.state === 'deleted'}>
          <RotateCcw size={14} aria-hidden />
          {w.notebook.restart}
        </Button>
        <Fork session={session} disabled={s.state === 'deleted'} />
      </div>
      {s.reason && <p className={css.quiet}>{s.reason}</p>}
      <dl className={css.facts}>
        <div>
          <dt>{w.panels.state}</dt>
          <dd>
            <State state={s.state} />
          </dd>
        </div>
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </>
  )
}
