import { createContext } from 'react'
import type { Move } from '../frame/protocol'
import { closed as closedOf, type Models, models as modelsOf, needed } from '../frame/widgetState'
import type { Mime, OutputEvent, WidgetsEvent } from './types'

// Widgets that code shows. Outputs have the states in which they were when the code ended; the interpreter, while it lives, has those in which they are.

export const widgetMime = 'application/vnd.jupyter.widget-view+json'

/** The id of the widget that a bundle shows. */
export function widgetOf(data: Mime): string | null {
  const view = data[widgetMime] as { model_id?: unknown } | null | undefined
  return typeof view?.model_id === 'string' && /^[!-~]{1,128}$/.test(view.model_id) ? view.model_id : null
}

export interface News {
  models: Models
  closed: string[]
}

export const newsOf = (event: Pick<WidgetsEvent, 'models' | 'closed'>): News => ({
  models: modelsOf(event.models),
  closed: closedOf(event.closed),
})

/** States that change, and who hears of it. */
export class WidgetStates {
  models: Models = Object.create(null)
  readonly closed = new Set<string>()
  private readonly readers = new Set<(news: News & { quiet: boolean }) => void>()

  /**
   * What code has changed by itself, the first reader's links pass on. What came of a move, those where it was made have passed on: were it done twice, what one makes of a
   * change would be news for the other, without an end.
   */
  push(news: News, passedOn = false) {
    for (const id of news.closed) {
      this.closed.add(id)
      delete this.models[id]
    }
    Object.assign(this.models, news.models)
    let quiet = passedOn
    for (const call of this.readers) {
      call({ ...news, quiet })
      quiet = true
    }
  }

  subscribe(call: (news: News & { quiet: boolean }) => void) {
    this.readers.add(call)
    return () => {
      this.readers.delete(call)
    }
  }
}

/** The states that events have told, which grow at their end. */
export class ToldStates extends WidgetStates {
  private count = 0
  private first: OutputEvent | undefined

  /** Whether they have a widget, or had it: code of clients that show none tells of none. */
  tells(view: string): boolean {
    return this.models[view] !== undefined || this.closed.has(view)
  }

  /** Reads what is new, and returns it. */
  read(events: readonly OutputEvent[]): News[] {
    if (events.length < this.count || events[0] !== this.first) {
      this.models = Object.create(null)
      this.closed.clear()
      this.count = 0
    }
    const news = events.slice(this.count).flatMap((e) => (e.type === 'widgets' ? [newsOf(e)] : []))
    this.count = events.length
    this.first = events[0]
    for (const one of news) this.push(one)
    return news
  }
}

/** What a view needs: as the interpreter has it, or else as it was told. */
export function statesFor(view: string, told: Models, now: Models): Models {
  return needed(Object.assign(Object.create(null), told, now), view)
}

/** Whether the interpreter has a widget. unknown: it was not asked yet, or did not say. */
export type Presence = 'there' | 'gone' | 'unknown'

/** What came of a move: what callbacks showed, and why it could not be made. */
export interface Moved {
  items: readonly OutputEvent[]
  models?: Models
  failed?: string
}

/** The widgets of the interpreter in which outputs were made. */
export interface WidgetPlace {
  states: WidgetStates
  /** gone: the session is not there any more. paused: to ask wakes it. */
  session: 'ready' | 'paused' | 'gone'
  /** Whether this account may move widgets. */
  mayMove: boolean
  presence: (view: string) => Presence
  /** Calls back when presence may have changed. */
  subscribe: (call: () => void) => () => void
  /** Asks the interpreter for the states. */
  ask: () => void
  /** Hears what an execution tells while it runs. */
  hear: (news: News) => void
  move: (move: Move) => Promise<Moved>
}

export const WidgetContext = createContext<WidgetPlace | null>(null)

/** The states that the outputs around have told. */
export const ToldContext = createContext<ToldStates | null>(null)
