import { useSyncExternalStore } from 'react'
import { type Follow, follow, type Link, readWhole } from '../api/follow'
import type { Problem } from '../api/problem'
import { applyExecution, type ExecutionView, newExecution } from './execution'
import { applyTurn, type End, endOf, newTurn, steps, type TurnView } from './turn'

export interface LinkState {
  link: Link
  problem?: Problem
  retryAt?: number
}

/** A view that grows while its stream is followed. Its readers are told once per animation frame. */
export interface Live<V> {
  view: V
  link: LinkState
  loaded: boolean
  subscribe: (call: () => void) => () => void
  version: () => number
  stop: () => void
}

/** Streams of what is over are short and many: two at a time. */
let free = 2
const waiting: (() => void)[] = []

function slot(): Promise<void> {
  if (free > 0) {
    free--
    return Promise.resolve()
  }
  return new Promise((done) => waiting.push(done))
}

function release() {
  const next = waiting.shift()
  if (next) next()
  else free++
}

interface Source<V> {
  id: string
  ends: readonly string[]
  view: V
  apply: (view: V, id: number, event: Record<string, unknown>) => boolean
  running: boolean
  onOver?: () => void
}

function begin<V>(source: Source<V>): Live<V> {
  const readers = new Set<() => void>()
  const control = new AbortController()
  let version = 0
  let scheduled = false
  const tell = () => {
    scheduled = false
    version++
    for (const call of readers) call()
  }
  const schedule = () => {
    if (scheduled) return
    scheduled = true
    if (document.hidden) setTimeout(tell, 250)
    else requestAnimationFrame(tell)
  }
  const live: Live<V> = {
    view: source.view,
    link: { link: 'idle' },
    loaded: false,
    subscribe: (call) => {
      readers.add(call)
      return () => {
        readers.delete(call)
      }
    },
    version: () => version,
    stop: () => control.abort(),
  }
  const how: Follow = {
    of: source.id,
    ends: source.ends,
    signal: control.signal,
    onEvents: (all) => {
      let news = false
      for (const { id, event } of all) news = source.apply(source.view, id, event) || news
      if (news) schedule()
    },
    onLink: (link, detail) => {
      live.link = { link, ...detail }
      if (link === 'over') {
        live.loaded = true
        source.onOver?.()
      }
      schedule()
    },
  }
  if (source.running) follow(how)
  else void slot().then(() => readWhole(how).finally(release))
  return live
}

const most = 200

function cache<V>(make: (id: string, running: boolean, hint: string) => Live<V>) {
  const known = new Map<string, Live<V>>()
  return (id: string, running: boolean, hint = ''): Live<V> => {
    let live = known.get(id)
    if (!live || live.link.link === 'failed') {
      live = make(id, running, hint)
      known.set(id, live)
      for (const [old, other] of known) {
        if (known.size <= most) break
        if (other.link.link !== 'over') continue
        known.delete(old)
      }
    }
    return live
  }
}

const overs = new Set<(turn: string, end: End) => void>()

/** Calls back when a turn that was followed is over. */
export function onTurnOver(call: (turn: string, end: End) => void) {
  overs.add(call)
  return () => {
    overs.delete(call)
  }
}

const stepOvers = new Set<() => void>()

/** Calls back when a step or an execution that was followed while it ran is over. */
export function onStepOver(call: () => void) {
  stepOvers.add(call)
  return () => {
    stepOvers.delete(call)
  }
}

/** Tells of the ends of steps, for what goes by what Python has now. */
function heard(event: Record<string, unknown>) {
  const inner = event.type === 'output' ? (event.event as { type?: unknown } | undefined) : event
  if (inner?.type === 'done') for (const call of stepOvers) call()
}

export const turnLive = cache<TurnView>((id, running) => {
  const view = newTurn(id)
  return begin({
    id,
    ends: ['answer', 'failure'],
    view,
    apply: (view, n, event) => {
      const news = applyTurn(view, n, event)
      if (news && running) heard(event)
      return news
    },
    running,
    onOver: () => {
      if (running) for (const call of overs) call(id, endOf(view))
    },
  })
})

export const executionLive = cache<ExecutionView>((id, running, code) =>
  begin({
    id,
    ends: ['done', 'failure'],
    view: newExecution(code),
    apply: (view, n, event) => {
      const news = applyExecution(view, n, event)
      if (news) heard(event)
      return news
    },
    running,
  }),
)

const never = () => () => {}

/** Renders with the view, again at each frame that brought something. */
export function useLive<V>(live: Live<V> | null): number {
  return useSyncExternalStore(live?.subscribe ?? never, live?.version ?? (() => 0))
}

/** Whether code of a turn waits for its person. Renders when that changes alone. */
export function useWaits(live: Live<TurnView> | null): boolean {
  return useSyncExternalStore(
    live?.subscribe ?? never,
    () => live !== null && steps(live.view).some((s) => s.state === 'waiting'),
  )
}
