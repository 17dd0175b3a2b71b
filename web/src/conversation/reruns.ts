import { createContext, useSyncExternalStore } from 'react'
import { client, data, type Execution, insist, once, type Turn } from '../api/client'
import { keepTurn, refresh } from '../api/queries'
import { blocksOf } from '../events/group'
import { executionLive, type Live, turnLive } from '../events/live'
import { steps } from '../events/turn'
import { complain, toast } from '../parts'
import type { Words } from '../words'
import { read, write } from './memory'

// Steps of a conversation that a person ran again, with their own code or as it was. The conversation itself stays as it is.

export interface Rerun {
  code: string
  session: string
  execution: string
  /** Grows with each run. */
  at: number
  state: 'waiting' | 'running' | 'ok' | 'failed'
}

export interface Step {
  id: string
  code: string
}

const place = 'cove.reruns'
const most = 100
const known = new Map<string, Rerun>(
  Object.entries(read<Record<string, Rerun>>(sessionStorage, place, {})).map(([id, r]) => [
    id,
    r.state === 'ok' || r.state === 'failed' || (r.state === 'running' && r.execution)
      ? r
      : { ...r, state: 'failed' as const },
  ]),
)
const readers = new Set<() => void>()
const subscribe = (call: () => void) => {
  readers.add(call)
  return () => {
    readers.delete(call)
  }
}

function put(id: string, rerun: Rerun | null) {
  if (rerun) known.set(id, rerun)
  else known.delete(id)
  const kept = [...known].filter(([, r]) => r.execution).slice(-most)
  write(sessionStorage, place, Object.fromEntries(kept))
  for (const call of readers) call()
}

const next = () => Math.max(Date.now(), latest() + 1)
const latest = () => Math.max(0, ...[...known.values()].map((r) => r.at))
const split = (id: string) => {
  const cut = id.lastIndexOf('/')
  return { turn: id.slice(0, cut), step: Number(id.slice(cut + 1)) }
}

/** Whether a step ran before one above it ran again. `turns` are those of the branch, in order. */
export function isStale(
  id: string,
  turns: readonly string[],
  all: ReadonlyMap<string, Pick<Rerun, 'at' | 'execution'>>,
) {
  const own = split(id)
  const place = turns.indexOf(own.turn)
  const ran = all.get(id)?.at ?? 0
  for (const [other, r] of all) {
    if (!r.execution || r.at <= ran) continue
    const o = split(other)
    const index = turns.indexOf(o.turn)
    if (index < 0) continue
    if (index < place || (index === place && o.step < own.step)) return true
  }
  return false
}

export const useRerun = (id: string): Rerun | null => useSyncExternalStore(subscribe, () => known.get(id) ?? null)
export const useStale = (id: string, turns: readonly string[]): boolean =>
  useSyncExternalStore(subscribe, () => known.size > 0 && isStale(id, turns, known))

export const rerunOf = (id: string): Rerun | null => known.get(id) ?? null

/** Has a step shown as it was. */
export function forget(id: string) {
  put(id, null)
  note(id, '')
}

/** Notes on the server that a step ran again: copies of the conversation say it, too. */
function note(id: string, execution: string) {
  const { turn, step } = split(id)
  const params = { path: { turn, step } }
  const noted = execution
    ? data(client.PUT('/turns/{turn}/reruns/{step}', { params, body: { execution } })).then(keepTurn)
    : data(client.DELETE('/turns/{turn}/reruns/{step}', { params })).then(async () =>
        keepTurn(await data(client.GET('/turns/{turn}', { params: { path: { turn } } }))),
      )
  noted.catch(complain)
}

const mostAdopted = 50
const adopted = new Set<string>()

/** Takes up what ran again in another window, as the turns have it. */
export async function adopt(turns: readonly Turn[]) {
  for (const [id, r] of known)
    if (r.state === 'running' && r.execution && turns.some((t) => t.id === split(id).turn)) void goOn(id, r)
  const there = turns.flatMap((t) => (t.reruns ?? []).map((r) => ({ id: `${t.id}/${r.step}`, ...r })))
  for (const { id, execution, at } of there.slice(-mostAdopted)) {
    if (adopted.has(execution) || known.get(id)?.execution === execution) continue
    adopted.add(execution)
    try {
      const ran = await data(client.GET('/executions/{execution}', { params: { path: { execution } } }))
      if ((known.get(id)?.at ?? 0) >= Date.parse(at)) continue
      const going = ran.state === 'running' || ran.state === 'queued'
      const state = going ? 'running' : ran.state === 'ok' ? 'ok' : 'failed'
      const rerun: Rerun = { code: ran.code, session: ran.session, execution, at: Date.parse(at), state }
      put(id, rerun)
      if (going) void goOn(id, rerun)
    } catch {
      adopted.delete(execution) // it is looked for again when the turns are read anew
    }
  }
}

export interface Place {
  session: string | undefined
  /** The turns of the branch that have steps. */
  turns: readonly Turn[]
  ids: readonly string[]
  /** A turn runs: Python is the model's for now. */
  busy: boolean
}
export const StepsContext = createContext<Place>({ session: undefined, turns: [], ids: [], busy: false })

export function ended<V>(live: Live<V>, over: (view: V) => boolean): Promise<void> {
  return new Promise((done) => {
    const look = () => {
      if (!over(live.view) && !live.loaded && live.link.link !== 'failed') return
      stop()
      done()
    }
    const stop = live.subscribe(look)
    queueMicrotask(look)
  })
}

const followed = new Set<string>()

/** Follows a run that another window began, or this one before it was reloaded, to its end. */
async function goOn(id: string, begun: Rerun) {
  if (followed.has(begun.execution)) return
  followed.add(begun.execution)
  const live = executionLive(begun.execution, true, begun.code)
  await ended(live, (v) => !!v.done || v.state === 'failed')
  if (known.get(id)?.execution !== begun.execution) return
  put(id, { ...begun, state: live.view.done?.outcome === 'ok' ? 'ok' : 'failed' })
  refresh({ session: begun.session })
}

async function runOne(session: string, { id, code }: Step): Promise<boolean> {
  const begun: Rerun = { code, session, execution: '', at: next(), state: 'running' }
  const before = known.get(id)
  put(id, begun)
  const header = once()
  try {
    const made = (await insist(() =>
      data(
        client.POST('/sessions/{session}/executions', {
          params: { path: { session }, query: { background: true }, header },
          body: { code, approved: true, input: true }, // a person has looked at it
        }),
      ),
    )) as Execution
    followed.add(made.id)
    put(id, { ...begun, execution: made.id })
    note(id, made.id)
    const live = executionLive(made.id, true, code)
    await ended(live, (v) => !!v.done || v.state === 'failed')
    const ok = live.view.done?.outcome === 'ok'
    put(id, { ...begun, execution: made.id, state: ok ? 'ok' : 'failed' })
    refresh({ session })
    return ok
  } catch (error) {
    complain(error)
    put(id, before?.execution ? before : null)
    return false
  }
}

export async function interrupt(id: string) {
  const execution = known.get(id)?.execution
  if (!execution) return
  await data(client.POST('/executions/{execution}/interrupt', { params: { path: { execution } } })).catch(complain)
}

/** All steps of the branch behind one, as they would run now. */
async function after(place: Place, id: string): Promise<Step[]> {
  const { turn, step } = split(id)
  const from = place.ids.indexOf(turn)
  const out: Step[] = []
  for (const t of place.turns.slice(Math.max(0, from))) {
    const live = turnLive(t.id, false)
    await ended(live, (v) => v.state !== 'running')
    for (const b of blocksOf(live.view).work) {
      if (b.kind !== 'group' || b.step.state !== 'ok') continue
      if (t.id === turn && b.step.number <= step) continue
      const key = `${t.id}/${b.step.number}`
      out.push({ id: key, code: known.get(key)?.code ?? b.step.code })
    }
  }
  return out
}

/** The programs of the branch that ran well before a step, as they would run now. */
export async function programsBefore(place: Place, id: string): Promise<string[]> {
  const { turn, step: n } = split(id)
  const out: string[] = []
  for (const t of place.turns.slice(0, place.ids.indexOf(turn) + 1)) {
    const live = turnLive(t.id, false)
    await ended(live, (v) => v.state !== 'running')
    for (const s of steps(live.view)) {
      if (s.state !== 'ok' || (t.id === turn && s.number >= n)) continue
      out.push(known.get(`${t.id}/${s.number}`)?.code ?? s.code)
    }
  }
  return out
}

/** Runs a step, and those behind it when that is wanted, as long as none fails. */
export async function runSteps(place: Place, step: Step, all: boolean, w: Words) {
  const { session } = place
  if (!session || place.busy || !step.code.trim()) return
  if ([...known.values()].some((r) => r.state === 'running' || r.state === 'waiting')) return
  const rest = all ? await after(place, step.id) : []
  const before = new Map(rest.map((s) => [s.id, known.get(s.id) ?? null]))
  for (const s of rest) put(s.id, { code: s.code, session, execution: '', at: 0, state: 'waiting' })
  const line = [step, ...rest]
  for (const [n, s] of line.entries()) {
    if (await runOne(session, s)) continue
    const left = line.slice(n + 1)
    for (const l of left) put(l.id, before.get(l.id) ?? null)
    if (left.length) toast(w.turn.stoppedHere(left.length))
    return
  }
}
