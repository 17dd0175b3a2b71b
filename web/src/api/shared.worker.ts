// Holds one stream for all pages of a browser. Pages say what they follow; who does not answer for long is gone.
import { type Change, Channel, isFinal, type Link, type Listener, type Refusal } from './channel'
import type { Said } from './events'

export type ToWorker =
  | { do: 'hello'; api: string; who: string }
  | { do: 'bye' | 'retry' | 'here' }
  | { do: 'follow'; n: number; of: string; at: number; ends: readonly string[] }
  | { do: 'leave'; n: number }

export type FromWorker =
  | { tell: 'ready' | 'ping' | 'answered' | 'unreachable' | 'signed-out' }
  | { tell: 'changed'; change: Change }
  | { tell: 'said'; n: number; said: Said[] }
  | { tell: 'link'; n: number; link: Link; retryAt?: number; refusal?: Refusal }

interface Page {
  port: MessagePort
  listeners: Map<number, Listener>
  heard: number
}

const every = 20_000 // milliseconds between two questions whether a page is there
const patience = 3 * every

const pages = new Set<Page>()
let address = ''
let person = ''

const post = (page: Page, message: FromWorker) => page.port.postMessage(message)
const all = (message: FromWorker) => {
  for (const page of pages) post(page, message)
}

const channel = new Channel({
  changed: (change) => all({ tell: 'changed', change }),
  open: async (follow, signal) => {
    const url = new URL('events', address)
    for (const name of follow) url.searchParams.append('follow', name)
    let response: Response
    try {
      response = await fetch(url, {
        headers: { Accept: 'text/event-stream' },
        credentials: 'same-origin',
        cache: 'no-store',
        signal,
      })
    } catch (error) {
      if (!signal.aborted) all({ tell: 'unreachable' })
      throw error
    }
    all({ tell: response.status === 502 || response.status === 504 ? 'unreachable' : 'answered' })
    if (response.ok) return response
    if (response.status === 401) all({ tell: 'signed-out' })
    const said = (await response.json().catch(() => ({}))) as Refusal
    if (isFinal(response.status)) throw { ...said, status: response.status } satisfies Refusal
    throw new Error(`HTTP ${response.status}`)
  },
})

function leave(page: Page) {
  for (const l of page.listeners.values()) channel.remove(l)
  page.listeners.clear()
  pages.delete(page)
  if (pages.size === 0) channel.stop()
}

function hear(page: Page, m: ToWorker) {
  page.heard = Date.now()
  if (m.do === 'bye') return leave(page)
  if (m.do === 'hello') {
    pages.add(page)
    const other = address !== m.api || person !== m.who
    address = m.api
    person = m.who
    channel.start()
    if (other) channel.reopen()
    post(page, { tell: 'ready' })
  } else if (m.do === 'retry') channel.retry()
  else if (m.do === 'leave') {
    const l = page.listeners.get(m.n)
    page.listeners.delete(m.n)
    if (l) channel.remove(l)
  } else if (m.do === 'follow') {
    const { n } = m
    const known = page.listeners.get(n)
    if (known) channel.remove(known)
    const l: Listener = {
      of: m.of,
      at: m.at,
      ends: m.ends,
      said: (said) => post(page, { tell: 'said', n, said }),
      link: (link, detail) => {
        if (link === 'over') page.listeners.delete(n)
        post(page, { tell: 'link', n, link, ...detail })
      },
    }
    page.listeners.set(n, l)
    channel.add(l)
  }
}

setInterval(() => {
  for (const page of pages) {
    if (Date.now() - page.heard > patience) leave(page)
    else post(page, { tell: 'ping' })
  }
}, every)

addEventListener('connect', (e) => {
  const port = (e as MessageEvent).ports[0]
  if (!port) return
  const page: Page = { port, listeners: new Map(), heard: Date.now() }
  port.onmessage = (m) => hear(page, m.data as ToWorker)
})
