import { createContext, useEffect, useMemo, useSyncExternalStore } from 'react'
import { client, data, type Execution, insist, once, type Turn } from '../api/client'
import { backOff, pause } from '../api/follow'
import { asProblem, offline, Problem } from '../api/problem'
import { keepTurn, queries, refresh } from '../api/queries'
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

/** What an execution was that a turn names, or that it was deleted, or may not be read by this account. */
export type Ran = Rerun | 'gone' | 'refused'

export interface Step {
  id: string
  code: string
}

type Mark = NonNullable<Turn['reruns']>[number]

const begun = new Map<string, Rerun>()
/** What ran here and the server has not noted, or has refused to note. */
let unnoted: ReadonlyMap<string, Mark> = new Map()
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

function setUnnoted(id: string, mark: Mark | null) {
  const next = new Map(unnoted)
  if (mark) next.set(id, mark)
  else next.delete(id)
  unnoted = next
  tell()
}

/** The newer one: a window that ran the step later than this one may have noted it. Both times are the server's. */
const newer = (noted: Mark | undefined, here: Mark | undefined) =>
  noted && here ? (Date.parse(noted.at) > Date.parse(here.at) ? noted : here) : (here ?? noted ?? null)

/** How a step ran again last: as the server has noted it, or here. */
export function notedOf(turns: readonly Turn[], id: string): Mark | null {
  const { turn, step } = split(id)
  return newer(
    turns.find((t) => t.id === turn)?.reruns?.find((r) => r.step === step),
    unnoted.get(id),
  )
}

/** Turns with the marks of what ran here that the server has not noted. */
function withUnnoted(turns: readonly Turn[], marks: ReadonlyMap<string, Mark>): readonly Turn[] {
  if (!marks.size) return turns
  return turns.map((t) => {
    const here = [...marks].flatMap(([id, mark]) => (split(id).turn === t.id ? [mark] : []))
    if (!here.length) return t
    const noted = t.reruns ?? []
    const others = noted.filter((r) => !here.some((h) => h.step === r.step))
    const same = here.flatMap(
      (h) =>
        newer(
          noted.find((r) => r.step === h.step),
          h,
        ) ?? [],
    )
    return { ...t, reruns: [...others, ...same].sort((a, b) => a.step - b.step) }
  })
}

export function useTurnsHere(turns: readonly Turn[]): readonly Turn[] {
  const marks = useSyncExternalStore(subscribe, () => unnoted)
  return useMemo(() => withUnnoted(turns, marks), [turns, marks])
}

/** In which session a step ran again last. */
export function sessionOfRerun(turns: readonly Turn[], id: string): string | undefined {
  const here = begun.get(id)
  if (here?.execution) return here.session
  return notedOf(turns, id)?.session || turns.find((t) => t.id === split(id).turn)?.session
}

/** How often the server is asked, and for how long in all. */
const mostTries = 7
const longest = 60_000

type Lane = <T>(work: () => Promise<T>) => Promise<T>
const alone: Lane = (work) => work()

/** Does what may be done twice until the server has answered, for about a minute. */
async function lasting<T>(work: (signal: AbortSignal) => Promise<T>, lane = alone, stop = new AbortController()) {
  const { signal } = stop
  let timer: ReturnType<typeof setTimeout> | undefined
  const begin = () => {
    timer ??= setTimeout(() => stop.abort(), longest)
    return work(signal)
  }
  try {
    for (let tries = 1; ; tries++) {
      try {
        return await lane(begin)
      } catch (error) {
        if (!asProblem(error).passing || tries === mostTries) throw error
        if (!signal.aborted) await pause(backOff(tries), signal)
        if (signal.aborted) throw error instanceof Problem ? error : offline()
      }
    }
  } finally {
    clearTimeout(timer)
  }
}

let free = 3
const waiting: (() => void)[] = []

/** A few lookups at once. One that waits to be made again keeps no other from being made. */
const few: Lane = async (work) => {
  if (free > 0) free--
  else await new Promise<void>((go) => waiting.push(go))
  try {
    return await work()
  } finally {
    const next = waiting.shift()
    if (next) next()
    else free++
  }
}

const read = (execution: string) =>
  lasting((signal) => data(client.GET('/executions/{execution}', { params: { path: { execution } }, signal })), few)

/** What the server's refusal says of an execution, or null where it says nothing. */
function refusalOf(error: unknown): 'gone' | 'refused' | null {
  const { status } = asProblem(error)
  if (status === 403) return 'refused'
  return status === 404 || status === 410 ? 'gone' : null
}

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
    const now = await read(rerun.execution).catch(refusalOf)
    if (typeof now === 'string') {
      learn(rerun.execution, now)
      return
    }
    if (now?.state === 'ok') state = 'ok'
  }
  learn(rerun.execution, { ...rerun, state })
  refresh({ session: rerun.session })
}

/** Asks once what an execution was. That it is not there any more, or may not be read, is an answer, too. */
export function lookUp(execution: string): Promise<Ran> {
  const known = ran.get(execution)
  return known ? Promise.resolve(known) : ask(execution)
}

function ask(execution: string): Promise<Ran> {
  const before = asked.get(execution)
  if (before) return before
  const answer = (async () => {
    try {
      const rerun = ranOf(await read(execution))
      learn(execution, rerun)
      if (rerun.state === 'running') void toEnd(rerun)
      return rerun
    } catch (error) {
      const refusal = refusalOf(error)
      if (refusal) return learn(execution, refusal)
      throw error
    } finally {
      asked.delete(execution)
    }
  })()
  asked.set(execution, answer)
  return answer
}

/** How many steps on the page show an execution. */
const watched = new Map<string, number>()

function watch(execution: string, by: 1 | -1) {
  const n = (watched.get(execution) ?? 0) + by
  if (n) watched.set(execution, n)
  else watched.delete(execution)
}

// An account may get a right: what was refused is asked for again when the turns are loaded again. While a turn runs they are loaded every few seconds, which is no reason.
queries.getQueryCache().subscribe((e) => {
  if (e.type !== 'updated' || e.action.type !== 'success' || e.action.manual || e.query.queryKey[0] !== 'turns') return
  if ((e.query.state.data as Turn[] | undefined)?.some((t) => t.state === 'running')) return
  for (const [execution, what] of ran) {
    if (what !== 'refused') continue
    if (watched.has(execution)) void ask(execution).catch(() => {})
    else ran.delete(execution)
  }
})

/** How a step ran again: in this window, or as the server has noted it, or why that is not to be seen. Null while it is not known. */
export function useRerun(turns: readonly Turn[], id: string): Ran | null {
  const execution = notedOf(turns, id)?.execution
  useEffect(() => {
    if (!execution) return
    void lookUp(execution).catch(() => {}) // the next step that shows it asks again
    watch(execution, 1)
    return () => watch(execution, -1)
  }, [execution])
  return useSyncExternalStore(subscribe, () => begun.get(id) ?? ran.get(notedOf(turns, id)?.execution ?? '') ?? null)
}

/** How a step ran last, or null where it did not run again. */
export async function rerunOf(turns: readonly Turn[], id: string): Promise<Rerun | null> {
  const here = begun.get(id)
  if (here?.execution) return here
  const noted = notedOf(turns, id)
  const known = noted && (await lookUp(noted.execution))
  return typeof known === 'string' ? null : known
}

/** Notes that are under way, by step, and the last change of marks, by turn: the server's answer to the last is how the turn is. */
const noting = new Map<string, AbortController>()
const marking = new Map<string, Promise<void>>()
/** Steps are noted in the order in which they ran: the server has the times of that. */
let lastNoted: Promise<void> = Promise.resolve()

function inOrder(turn: string, work: () => Promise<void>, after?: Promise<void>): Promise<void> {
  const done = Promise.all([marking.get(turn), after]).then(work)
  const over = done.finally(() => marking.get(turn) === over && marking.delete(turn))
  marking.set(turn, over)
  return done
}

/** Has a step shown as it was. */
export function forget(id: string): Promise<void> {
  const { turn, step } = split(id)
  const params = { path: { turn, step } }
  const here = unnoted.has(id)
  noting.get(id)?.abort()
  noting.delete(id)
  if (here) setUnnoted(id, null)
  return inOrder(turn, async () => {
    try {
      await lasting((signal) => data(client.DELETE('/turns/{turn}/reruns/{step}', { params, signal })))
      keepTurn(await lasting((signal) => data(client.GET('/turns/{turn}', { params, signal }))))
    } catch (error) {
      // Where the server noted nothing, its refusal to remove that is none.
      if (!here || asProblem(error).passing) complain(error)
    }
  })
}

/** Notes on the server that a step ran again: other windows and copies of the conversation say it, too. Where that fails it is said here alone. */
function note(id: string, mark: Mark, w: Words): Promise<void> {
  const { turn, step } = split(id)
  const { execution } = mark
  const stop = new AbortController()
  noting.get(id)?.abort()
  noting.set(id, stop)
  setUnnoted(id, mark)
  const request = { params: { path: { turn, step } }, body: { execution } }
  const send = async () => {
    if (stop.signal.aborted) return
    try {
      keepTurn(
        await lasting((signal) => data(client.PUT('/turns/{turn}/reruns/{step}', { ...request, signal })), alone, stop),
      )
      // The turns as they are now are on the screen first: what ran is not away in between.
      setTimeout(() => unnoted.get(id) === mark && setUnnoted(id, null))
    } catch (error) {
      if (noting.get(id) === stop) complain(error, {}, w.turn.ranUnnoted)
    } finally {
      if (noting.get(id) === stop) noting.delete(id)
    }
  }
  lastNoted = inOrder(turn, send, lastNoted)
  return lastNoted
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

async function runOne(session: string, { id, code }: Step, w: Words): Promise<boolean> {
  const start: Rerun = { code, session, execution: '', state: 'running' }
  put(id, start)
  const header = once()
  try {
    const made = (await insist(() =>
      data(
        client.POST('/sessions/{session}/executions', {
          params: { path: { session }, query: { background: true }, header },
          body: { code, approved: true, input: true, widgets: true }, // a person has looked at it
        }),
      ),
    )) as Execution
    const runs = { ...start, execution: made.id }
    put(id, runs)
    learn(made.id, runs)
    // A note that waits keeps nothing from running.
    void note(id, { step: split(id).step, execution: made.id, session, at: made.created_at }, w)
    const live = executionLive(made.id, true, code)
    await ended(live, (v) => !!v.done || v.state === 'failed')
    const ok = live.view.done?.outcome === 'ok'
    learn(made.id, { ...runs, state: ok ? 'ok' : 'failed' })
    refresh({ session })
    return ok
  } catch (error) {
    complain(error)
    return false
  } finally {
    put(id, null)
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

const isTaken = (session: string) =>
  [...begun.values()].some((r) => r.session === session && (r.state === 'running' || r.state === 'waiting'))

/** Runs a step, and those after it when that is wanted, as long as none fails. */
export async function runSteps(place: Place, step: Step, all: boolean, w: Words) {
  const { session } = place
  if (!session || place.busy || !step.code.trim()) return
  if (isTaken(session)) return
  let rest: Step[] = []
  try {
    if (all) rest = await after(place, step.id)
  } catch (error) {
    complain(error)
    return
  }
  if (isTaken(session)) return
  for (const s of rest) put(s.id, { code: s.code, session, execution: '', state: 'waiting' })
  const line = [step, ...rest]
  for (const [n, s] of line.entries()) {
    if (await runOne(session, s, w)) continue
    const left = line.slice(n + 1)
    for (const l of left) put(l.id, null)
    if (left.length) toast(w.turn.stoppedHere(left.length))
    return
  }
}
