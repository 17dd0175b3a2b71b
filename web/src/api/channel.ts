// One stream of events for all that is followed: of a page, or, in a shared worker, of all pages of a browser, which has
// six connections per host for all of its tabs.
import { backOff, isCut, readEvents, type Said, saidOf } from './events'

export type Link = 'idle' | 'open' | 'waiting' | 'over' | 'failed'

/** Why a stream failed for good, as it is sent from a worker. */
export interface Refusal {
  status: number
  code?: string
  detail?: string
  hint?: string
}

/** Something that changed on the server, as its event `changed` says. */
export interface Change {
  kind: 'conversation' | 'turn' | 'session' | 'execution' | 'all'
  id?: string
  conversation?: string
  session?: string
  state?: string
}

export interface Listener {
  /** Of a turn or an execution. */
  of: string
  /** The id of the last event that it has. */
  at: number
  ends: readonly string[]
  said: (said: Said[]) => void
  link: (link: Link, detail?: { retryAt?: number; refusal?: Refusal }) => void
}

export interface Source {
  /** Opens the stream. It fails with a Refusal when trying again is of no use, otherwise with anything. */
  open: (follow: string[], signal: AbortSignal) => Promise<Response>
  changed: (change: Change) => void
}

export const isRefusal = (error: unknown): error is Refusal =>
  typeof error === 'object' && error !== null && typeof (error as Refusal).status === 'number'

/** Whether a status is one that another try does not change. */
export const isFinal = (status: number) => status >= 400 && status < 500 && status !== 429 && status !== 408

export class Channel {
  private readonly listeners = new Set<Listener>()
  /** What the open stream brings: up to which event it is known. */
  private followed = new Map<string, number>()
  private control: AbortController | null = null
  private timer: ReturnType<typeof setTimeout> | undefined
  private tries = 0
  private on = false

  constructor(private readonly source: Source) {}

  /** Opens the stream, and keeps it open until stop. */
  start() {
    if (this.on) return
    this.on = true
    this.again(0)
  }

  stop() {
    this.on = false
    clearTimeout(this.timer)
    this.control?.abort()
    this.control = null
    for (const l of this.listeners) l.link('idle')
  }

  /** Tries at once, if it waits. */
  retry() {
    if (this.on && !this.control) this.again(0)
  }

  /** Opens the stream anew, as when somebody else is signed in. */
  reopen() {
    if (this.on) this.again(0)
  }

  add(l: Listener) {
    this.listeners.add(l)
    // An open stream that is further, or does not have it, has to begin anew.
    if (this.on && !(this.control && (this.followed.get(l.of) ?? Number.POSITIVE_INFINITY) <= l.at)) this.again(0)
    else if (this.on) l.link('open')
  }

  remove(l: Listener) {
    this.listeners.delete(l)
    // What nobody follows any more is brought for a while: leaving one page is often the way to another.
    if (this.on && this.followed.has(l.of) && !this.wanted().has(l.of)) this.again(3000)
  }

  get idle() {
    return this.listeners.size === 0
  }

  private wanted() {
    const all = new Map<string, number>()
    for (const l of this.listeners) all.set(l.of, Math.min(all.get(l.of) ?? Number.POSITIVE_INFINITY, l.at))
    return all
  }

  private again(after: number) {
    clearTimeout(this.timer)
    this.timer = setTimeout(() => void this.run(), after)
  }

  private async run() {
    this.control?.abort()
    const control = new AbortController()
    this.control = control
    this.followed = this.wanted()
    const follow = [...this.followed].map(([of, at]) => (at > 0 ? `${of}:${at}` : of))
    try {
      const response = await this.source.open(follow, control.signal)
      if (control.signal.aborted) return
      this.tries = 0
      for (const l of this.listeners) l.link('open')
      const batch: Said[] = []
      await readEvents(response, (said) => {
        if (control.signal.aborted) return true
        // Events that come together are handed on together.
        if (batch.push(said) === 1) setTimeout(() => this.deliver(batch.splice(0), control.signal), 0)
        return undefined
      })
      this.deliver(batch.splice(0), control.signal)
    } catch (error) {
      if (control.signal.aborted) return
      if (isRefusal(error) && isFinal(error.status)) {
        this.control = null
        for (const l of [...this.listeners]) l.link('failed', { refusal: error })
        return
      }
    }
    if (control.signal.aborted) return
    this.control = null
    const wait = backOff(this.tries++)
    for (const l of this.listeners) l.link('waiting', { retryAt: Date.now() + wait })
    this.again(wait)
  }

  private deliver(batch: readonly Said[], signal: AbortSignal) {
    if (signal.aborted) return
    const sorted = new Map<string, Said[]>()
    for (const { type, event } of batch) {
      if (type === 'changed') this.source.changed(event as unknown as Change)
      if (type !== 'followed' || typeof event.of !== 'string' || !event.event) continue
      const list = sorted.get(event.of) ?? []
      list.push(saidOf(Number(event.id) || 0, event.event as Record<string, unknown>))
      sorted.set(event.of, list)
    }
    for (const [of, list] of sorted) this.hand(of, list)
  }

  private hand(of: string, list: Said[]) {
    const last = list[list.length - 1]
    if (!last) return
    if (last.id > 0) this.followed.set(of, Math.max(last.id, this.followed.get(of) ?? 0))
    if (isCut(last)) {
      list.pop()
      this.again(backOff(0))
    }
    for (const l of [...this.listeners]) {
      if (l.of !== of) continue
      const news = list.filter((said) => said.id === 0 || said.id > l.at)
      if (news.length === 0) continue
      l.at = Math.max(l.at, ...news.map((said) => said.id))
      l.said(news)
      if (!news.some((said) => l.ends.includes(said.type))) continue
      this.listeners.delete(l)
      l.link('over')
    }
  }
}
