import { useMemo } from 'react'
import { client, data, type Execution, type Session } from '../api/client'
import { onChange } from '../api/follow'
import { asProblem } from '../api/problem'
import { queries, useMe } from '../api/queries'
import { executionLive } from '../events/live'
import type { Move } from '../frame/protocol'
import type { Models } from '../frame/widgetState'
import type { WidgetsEvent } from '../output/types'
import { type Moved, newsOf, type Presence, type WidgetPlace, WidgetStates } from '../output/widgets'
import { may } from '../pages/admin/rights'
import { explain } from '../words/problems'

// The widgets of the interpreters of sessions: one of these for each, for all views of the page.

const mostWaiting = 100
const mostFailed = 5
const quietEvents = new Set(['widgets', 'file', 'done'])
const least = 40 // milliseconds between moves
const again = 1500 // milliseconds until a busy interpreter is asked again
const quiet = 250 // milliseconds in which several changes are one

/** Begins the code of executions that are moves of widgets, or what a client of Jupyter's does alike: no cells. */
export const widgetCode = 'get_ipython().kernel.comms.'

class Widgets {
  readonly states = new WidgetStates()
  /** The ids that the interpreter has; null: it has not said. */
  private known: Set<string> | null = null
  private asking = false
  private askAgain = false
  private moving = 0
  private timer: ReturnType<typeof setTimeout> | undefined
  private line: Promise<unknown> = Promise.resolve()
  private waiting = 0
  private failed = 0
  private readonly readers = new Set<() => void>()

  constructor(private readonly session: string) {
    onChange((change) => {
      if (!this.readers.size || this.moving) return
      if (change.kind === 'execution' && change.session === session) this.later()
      // Python was begun anew, or went back to an earlier state. Whether the session is paused is known a moment later.
      if (change.kind === 'session' && change.id === session) this.later(again)
    })
    document.addEventListener('visibilitychange', () => {
      if (!document.hidden && this.readers.size) this.later()
    })
  }

  subscribe = (call: () => void) => {
    this.readers.add(call)
    return () => {
      this.readers.delete(call)
    }
  }

  presence = (view: string): Presence => (!this.known ? 'unknown' : this.known.has(view) ? 'there' : 'gone')

  private tell() {
    for (const call of this.readers) call()
  }

  private later(wait = quiet) {
    this.timer ??= setTimeout(() => {
      this.timer = undefined
      const { state } = queries.getQueryData<Session>(['session', this.session]) ?? {}
      if (!document.hidden && state === 'active') this.ask()
    }, wait)
  }

  ask = () => {
    if (this.asking) this.askAgain = true
    else void this.read()
  }

  private async read() {
    this.asking = true
    try {
      const path = { session: this.session, kernel: 'main' }
      const said = await data(client.GET('/sessions/{session}/kernels/{kernel}/widgets', { params: { path } }))
      this.failed = 0
      if (said.busy) return this.later(again)
      const { models } = newsOf(said)
      this.known = said.more > 0 ? null : new Set(Object.keys(models))
      if (!this.moving) this.states.push({ models, closed: [] }, true)
      this.tell()
    } catch (error) {
      const { status } = asProblem(error)
      if (status === 404 || status === 410) {
        this.known = new Set()
        this.tell()
      } else if (++this.failed < mostFailed) this.later(again) // such as a Python that begins anew
    } finally {
      this.asking = false
      if (this.askAgain) {
        this.askAgain = false
        this.later()
      }
      void queries.invalidateQueries({ queryKey: ['session', this.session] })
    }
  }

  hear = (news: ReturnType<typeof newsOf>, passedOn = false) => {
    if (this.known) for (const id of Object.keys(news.models)) this.known.add(id)
    this.states.push(news, passedOn)
    this.tell()
  }

  /** Moves are made one after the other, as fast as their code runs. */
  move = (move: Move): Promise<Moved> => {
    if (this.waiting >= mostWaiting) return Promise.resolve({ items: [] })
    this.waiting++
    this.moving++
    const made = this.line.then(() => this.make(move))
    this.line = made
      .then(() => new Promise((done) => setTimeout(done, least)))
      .finally(() => {
        this.waiting--
        this.moving--
      })
    return made
  }

  private async make({ widget, state, content }: Move): Promise<Moved> {
    try {
      const made = (await data(
        client.POST('/sessions/{session}/kernels/{kernel}/widgets/{widget}', {
          params: { path: { session: this.session, kernel: 'main', widget } },
          body: state === undefined ? { content } : { state },
        }),
      )) as Execution
      return await this.follow(made.id, widget)
    } catch (error) {
      return { items: [], failed: explain(asProblem(error)).what }
    }
  }

  /** Takes what an execution tells as it comes, and returns what it showed. */
  private follow(execution: string, widget: string): Promise<Moved> {
    const live = executionLive(execution, true)
    return new Promise((done) => {
      let read = 0
      const models: Models = Object.create(null)
      const look = () => {
        const { items, done: end, state } = live.view
        for (const item of items.slice(read))
          if (item.type === 'widgets') Object.assign(models, this.heardOf(item, widget))
        read = items.length
        if (!end && state !== 'failed' && live.link.link !== 'failed') return
        off()
        const shown = items.filter((i) => !quietEvents.has(i.type) || (i.type === 'done' && i.outcome !== 'ok'))
        done({ items: shown, models })
      }
      const off = live.subscribe(look)
      look()
    })
  }

  private heardOf(event: WidgetsEvent, moved: string) {
    const news = newsOf(event)
    if (news.closed.includes(moved) && !this.states.closed.has(moved)) {
      // The interpreter is another one, or went back.
      this.known?.delete(moved)
      this.known ??= new Set()
      news.closed = news.closed.filter((id) => id !== moved)
    }
    this.hear(news, true)
    return news.models
  }
}

const all = new Map<string, Widgets>()

export function widgetsOf(session: string): Widgets {
  let known = all.get(session)
  if (!known) {
    known = new Widgets(session)
    all.set(session, known)
  }
  return known
}

/** The widgets of a session, for the outputs that were made in it. */
export function useWidgets(session: string | undefined, state: WidgetPlace['session'] | null): WidgetPlace | null {
  const me = useMe(!!session).data
  const mayMove = !!me && may(me, 'sessions:execute')
  return useMemo(() => {
    if (!state) return null
    const { states, presence, subscribe, ask, hear, move } = widgetsOf(session ?? '')
    return { states, presence, subscribe, ask, hear, move, session: state, mayMove }
  }, [session, state, mayMove])
}
