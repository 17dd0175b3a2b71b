import { api } from './base'
import { type Change, Channel, isFinal, type Link, type Listener, type Refusal } from './channel'
import { devHeaders, send, signedOut } from './client'
import { noteAnswer, noteFailure } from './connection'
import { backOff, isCut, readEvents, type Said } from './events'
import { asProblem, Problem } from './problem'
import type { FromWorker, ToWorker } from './shared.worker'
import address from './shared.worker.ts?worker&url'
import { ownScript } from './trusted'

export type { Link, Said }
export { backOff }

export interface Follow {
  /** Of the turn or the execution. */
  of: string
  after?: number
  /** These end the stream. */
  ends: readonly string[]
  signal: AbortSignal
  onEvents: (said: readonly Said[]) => void
  onLink?: (link: Link, detail?: { problem?: Problem; retryAt?: number }) => void
}

const pathOf = (id: string) => api(`${id.startsWith('trn_') ? 'turns' : 'executions'}/${id}/events`)

/** A pause that ends early when the machine is online again or somebody asks for it. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const over = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', over)
      window.removeEventListener('online', over)
      window.removeEventListener('cove-retry', over)
      done()
    }
    const timer = setTimeout(over, ms)
    signal.addEventListener('abort', over)
    window.addEventListener('online', over)
    window.addEventListener('cove-retry', over)
  })
}

/** Reads what is over from its own address, over lost connections, each time from the last event that came. */
export async function readWhole(f: Follow): Promise<void> {
  let after = f.after ?? 0
  for (let tries = 0; !f.signal.aborted; ) {
    let over = false
    try {
      const headers: Record<string, string> = { Accept: 'text/event-stream' }
      if (after > 0) headers['Last-Event-ID'] = String(after)
      const response = await send(pathOf(f.of), { headers, signal: f.signal, cache: 'no-store' })
      f.onLink?.('open')
      await readEvents(response, (said) => {
        if (isCut(said)) return true
        f.onEvents([said])
        after = Math.max(after, said.id)
        tries = 0
        over = f.ends.includes(said.type)
        return over
      })
    } catch (error) {
      if (f.signal.aborted) return
      const problem = asProblem(error)
      if (isFinal(problem.status)) {
        f.onLink?.('failed', { problem })
        return
      }
    }
    if (over) {
      f.onLink?.('over')
      return
    }
    const wait = backOff(tries++)
    f.onLink?.('waiting', { retryAt: Date.now() + wait })
    await pause(wait, f.signal)
  }
}

const hearers = new Set<(change: Change) => void>()

/** Calls back for everything that changes on the server. */
export function onChange(call: (change: Change) => void) {
  hearers.add(call)
  return () => {
    hearers.delete(call)
  }
}

const told = (change: Change) => {
  for (const call of hearers) call(change)
}

interface Post {
  add: (n: number, l: Listener) => void
  remove: (n: number, l: Listener) => void
  retry: () => void
}

/** A channel of this page's own. While nobody sees the page it is closed: a browser has six connections per host. */
function ownChannel(): Post {
  const channel = new Channel({
    changed: told,
    open: async (follow, signal) => {
      const url = new URL(api('events'))
      for (const name of follow) url.searchParams.append('follow', name)
      try {
        return await send(url.href, { headers: { Accept: 'text/event-stream' }, signal, cache: 'no-store' })
      } catch (error) {
        const p = asProblem(error)
        throw isFinal(p.status) ? ({ status: p.status, code: p.code, detail: p.message, hint: p.hint } as Refusal) : p
      }
    },
  })
  let timer: ReturnType<typeof setTimeout> | undefined
  const look = () => {
    clearTimeout(timer)
    if (document.hidden) timer = setTimeout(() => channel.stop(), 2000)
    else channel.start()
  }
  document.addEventListener('visibilitychange', look)
  look()
  return { add: (_, l) => channel.add(l), remove: (_, l) => channel.remove(l), retry: () => channel.retry() }
}

/** The channel of all pages of this browser, in a worker that they share. */
function sharedChannel(who: string): Post {
  const worker = new SharedWorker(ownScript(new URL(address, import.meta.url).href), { type: 'module', name: 'cove' })
  const post = (m: ToWorker) => worker.port.postMessage(m)
  const mine = new Map<number, Listener>()
  const hello = () => {
    post({ do: 'hello', api: api(''), who })
    for (const [n, { of, at, ends }] of mine) post({ do: 'follow', n, of, at, ends })
  }
  worker.port.onmessage = ({ data }) => {
    const m = data as FromWorker
    if (m.tell === 'ping') post({ do: 'here' })
    else if (m.tell === 'answered') noteAnswer()
    else if (m.tell === 'unreachable') noteFailure()
    else if (m.tell === 'signed-out') signedOut()
    else if (m.tell === 'changed') told(m.change)
    else if (m.tell === 'said') {
      const l = mine.get(m.n)
      // A page that was away for long asked again: what it has by now comes twice.
      const news = l ? m.said.filter((said) => said.id === 0 || said.id > l.at) : []
      if (!l || news.length === 0) return
      l.at = Math.max(l.at, ...news.map((said) => said.id))
      l.said(news)
    } else if (m.tell === 'link') {
      const l = mine.get(m.n)
      if (m.link === 'over' || m.link === 'failed') mine.delete(m.n)
      l?.link(m.link, m)
    }
  }
  hello()
  let away = false
  addEventListener('pagehide', () => {
    away = true
    post({ do: 'bye' })
  })
  const back = () => {
    if (document.hidden && !away) return
    away = false
    hello()
  }
  addEventListener('pageshow', (e) => e.persisted && back())
  document.addEventListener('visibilitychange', () => !document.hidden && back())
  return {
    add: (n, l) => {
      mine.set(n, l)
      post({ do: 'follow', n, of: l.of, at: l.at, ends: l.ends })
    },
    remove: (n) => {
      mine.delete(n)
      post({ do: 'leave', n })
    },
    retry: () => post({ do: 'retry' }),
  }
}

let current: Post | null = null
let numbers = 0

/** Opens the stream of a person who is signed in. */
export function connect(who: string) {
  if (current) return
  // A key of the development server is the page's own, and not every browser has shared workers.
  const shared = typeof SharedWorker === 'function' && Object.keys(devHeaders()).length === 0
  try {
    current = shared ? sharedChannel(who) : ownChannel()
  } catch {
    current = ownChannel()
  }
  addEventListener('online', retryNow)
}

/** Asks all streams that wait to try again now. */
export function retryNow() {
  current?.retry()
  window.dispatchEvent(new Event('cove-retry'))
}

/** Follows what runs, to its end. */
export function follow(f: Follow) {
  const post = current ?? ownChannel()
  current = post
  const n = ++numbers
  const l: Listener = {
    of: f.of,
    at: f.after ?? 0,
    ends: f.ends,
    said: f.onEvents,
    link: (link, detail) =>
      f.onLink?.(link, {
        ...(detail?.retryAt ? { retryAt: detail.retryAt } : {}),
        ...(detail?.refusal ? { problem: new Problem(detail.refusal.status, detail.refusal as object) } : {}),
      }),
  }
  f.signal.addEventListener('abort', () => post.remove(n, l))
  if (!f.signal.aborted) post.add(n, l)
}
