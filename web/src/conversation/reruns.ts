import { createContext, useEffect, useSyncExternalStore } from 'react'
import { client, data, type Execution, insist, once, type Turn } from '../api/client'
import { backOff, pause } from '../api/follow'
import { asProblem } from '../api/problem'
import { keepTurn, refresh } from '../api/queries'
import { blocksOf } from '../events/group'
import { executionLive, type Live, turnLive } from '../events/live'
import { steps } from '../events/turn'
import { complain, toast } from '../parts'
import type { Words } from '../words'

// Steps of a conversation that a person ran again, with their own code or as it was. The conversation itself stays as it is. Which they are is the server's to say
// (Turn.reruns): this window alone knows of those that wait or run in it, until the server has noted them.

export interface Rerun {
  code: string
  session: string
  execution: string
  state: 'waiting' | 'running' | 'ok' | 'failed'
}

/** What an execution was that a turn names, or that it was deleted. */
export type Ran = Rerun | 'gone'

export interface Step {
  id: string
  code: string
}

const begun = new Map<string, Rerun>()
const ran = new Map<string, Ran>()
const asked = new Map<string, Promise<Ran>>()

const readers = new Set<() => void>()
const subscribe = (call: () => void) => {
  readers.add(call)
  return () => {
    readers.delete(call)
  }
}
const tell = () => {
  for (const call of readers) call()
}

function put(id: string, rerun: Rerun | null) {
  if (rerun) begun.set(id, rerun)
  else begun.delete(id)
  tell()
}

function learn(execution: string, what: Ran): Ran {
  ran.set(execution, what)
  tell()
  return what
}

const split = (id: string) => {
  const cut = id.lastIndexOf('/')
  return { turn: id.slice(0, cut), step: Number(id.slice(cut + 1)) }
}

/** What the server has noted of a step that ran again. */
export function notedOf(turns: readonly Turn[], id: string) {
  const { turn, step } = split(id)
  return turns.find((t) => t.id === turn)?.reruns?.find((r) => r.step === step) ?? null
}

const never = new AbortController().signal

/** Does what may be done twice until the server has answered. */
async function lasting<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      return await work()
    } catch (error) {
      if (!asProblem(error).passing) throw error
      await pause(backOff(tries), never)
    }
  }
}

const read = (execution: string) =>
  lasting(() => data(client.GET('/executions/{execution}', { params: { path: { execution } } })))

const isGone = (error: unknown) => [403, 404, 410].includes(asProblem(error).status)

function ranOf({ id, code, session, state }: Execution): Rerun {
  const runs = state === 'queued' || state === 'running'
  return { code, session, execution: id, state: runs ? 'running' : state === 'ok' ? 'ok' : 'failed' }
}

/** Follows what another window has begun to its end. */
async function toEnd(rerun: Rerun) {
  const live = executionLive(rerun.execution, true, rerun.code)
  await ended(live, (v) => !!v.done || v.state === 'failed')
  let state = live.view.done?.outcome === 'ok' ? ('ok' as const) : ('failed' as const)
  if (!live.view.done) {
    // Its events do not say how it ended: its record does, if it is still there.
    const now = await read(rerun.execution).catch((error: unknown) => (isGone(error) ? 'gone' : null))
    if (now === 'gone') {
      learn(rerun.execution, 'gone')
      return
    }
    if (now?.state === 'ok') state = 'ok'
  }
  learn(rerun.execution, { ...rerun, state })
  refresh({ session: rerun.session })
}

let line: Promise<unknown> = Promise.resolve()

/** Asks once what an execution was, one at a time. That it is not there any more is an answer, too. */
export function lookUp(execution: string): Promise<Ran> {
  const known = ran.get(execution)
  if (known) return Promise.resolve(known)
  const before = asked.get(execution)
  if (before) return before
  const answer = line.then(async () => {
    try {
      const rerun = ranOf(await read(execution))
      learn(execution, rerun)
      if (rerun.state === 'running') void toEnd(rerun)
      return rerun
    } catch (error) {
      if (isGone(error)) return learn(execution, 'gone')
      throw error
    } finally {
      asked.delete(execution)
    }
  })
  asked.set(execution, answer)
  line = answer.catch(() => {})
  return answer
}

/** How a step ran again: in this window, or as the server has noted it; 'gone' when that was deleted. Null while it is not known. */
export function useRerun(turns: readonly Turn[], id: string): Ran | null {
  const execution = notedOf(turns, id)?.execution
  useEffect(() => {
    if (execution) void lookUp(execution).catch(() => {})
  }, [execution])
  return useSyncExternalStore(subscribe, () => begun.get(id) ?? (execution ? (ran.get(execution) ?? null) : null))
}

/** How a step ran last, or null where it did not run again. */
export async function rerunOf(turns: readonly Turn[], id: string): Promise<Rerun | null> {
  const here = begun.get(id)
  if (here?.execution) return here
  const noted = notedOf(turns, id)
  const known = noted && (await lookUp(noted.execution))
  return known === 'gone' ? null : known
}

/** Has a step shown as it was. */
export async function forget(id: string) {
  const { turn, step } = split(id)
  try {
    await data(client.DELETE('/turns/{turn}/reruns/{step}', { params: { path: { turn, step } } }))
    keepTurn(await data(client.GET('/turns/{turn}', { params: { path: { turn } } })))
  } catch (error) {
    complain(error)
  }
}

/** Notes on the server that a step ran again: other windows and copies of the conversation say it, too. */
async function note(id: string, execution: string) {
  const { turn, step } = split(id)
  try {
    const params = { path: { turn, step } }
    keepTurn(await lasting(() => data(client.PUT('/turns/{turn}/reruns/{step}', { params, body: { execution } }))))
  } catch (error) {
    complain(error)
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

async function runOne(session: string, { id, code }: Step): Promise<boolean> {
  const start: Rerun = { code, session, execution: '', state: 'running' }
  put(id, start)
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
    const runs = { ...start, execution: made.id }
    put(id, runs)
    learn(made.id, runs)
    const noted = note(id, made.id)
    const live = executionLive(made.id, true, code)
    await ended(live, (v) => !!v.done || v.state === 'failed')
    const ok = live.view.done?.outcome === 'ok'
    const over: Rerun = { ...runs, state: ok ? 'ok' : 'failed' }
    learn(made.id, over)
    put(id, over)
    await noted
    refresh({ session })
    return ok
  } catch (error) {
    complain(error)
    return false
  } finally {
    // The turns as they are now are on the screen first: what ran is not away in between.
    const own = begun.get(id)
    setTimeout(() => begun.get(id) === own && put(id, null))
  }
}

export async function interrupt(execution: string) {
  if (!execution) return
  await data(client.POST('/executions/{execution}/interrupt', { params: { path: { execution } } })).catch(complain)
}

/** All steps of the branch after one, as they would run now. */
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
      out.push({ id: key, code: (await rerunOf(place.turns, key))?.code ?? b.step.code })
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
      out.push((await rerunOf(place.turns, `${t.id}/${s.number}`))?.code ?? s.code)
    }
  }
  return out
}

/** Runs a step, and those after it when that is wanted, as long as none fails. */
export async function runSteps(place: Place, step: Step, all: boolean, w: Words) {
  const { session } = place
  if (!session || place.busy || !step.code.trim()) return
  if ([...begun.values()].some((r) => r.session === session && (r.state === 'running' || r.state === 'waiting'))) return
  const rest = all ? await after(place, step.id) : []
  for (const s of rest) put(s.id, { code: s.code, session, execution: '', state: 'waiting' })
  const line = [step, ...rest]
  for (const [n, s] of line.entries()) {
    if (await runOne(session, s)) continue
    const left = line.slice(n + 1)
    for (const l of left) put(l.id, null)
    if (left.length) toast(w.turn.stoppedHere(left.length))
    return
  }
}
