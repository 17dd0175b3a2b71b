// What the page and the frame of a chart say to each other. Both read what they get as hostile.

import { type Models, models, closed as readClosed } from './widgetState'

export type Kind = 'plotly' | 'vega' | 'vega-lite' | 'html' | 'scripts' | 'widgets'
export type Export = 'png' | 'svg' | 'csv'

/** From the page. The first message has the nonce that all others must have, in both directions. */
export interface In {
  cove: string
  render?: { kind: Kind; data: unknown; theme: 'light' | 'dark'; locale: string; fill: boolean }
  export?: Export
  /** New states of widgets, also with the number of a move whose code has run. quiet: links of this frame tell their code nothing of it. */
  widgets?: { models?: Models; closed?: string[]; done?: number; quiet?: boolean }
}

/** What a person did with a widget: parts of its state, or a message that its code understands. Numbers count up. */
export interface Move {
  n: number
  widget: string
  state?: unknown
  content?: unknown
}

/** From the frame. */
export interface Out {
  cove: string
  height?: number
  exported?: { kind: Export; bytes: ArrayBuffer }
  link?: string
  failed?: string
  refused?: true // the frame's policy did not let a script run
  leave?: true // Esc was pressed
  move?: Move
}

export const heights = { least: 40, most: 2000 }
export const limits = { exported: 100_000_000, link: 8000, failed: 500, move: 200_000 }

const kinds: readonly string[] = ['plotly', 'vega', 'vega-lite', 'html', 'scripts', 'widgets']
const exports_: readonly string[] = ['png', 'svg', 'csv']
const isRecord = (v: unknown): v is Record<string, unknown> => v !== null && typeof v === 'object' && !Array.isArray(v)

export function readIn(message: unknown, nonce: string | null): In | null {
  if (!isRecord(message) || typeof message.cove !== 'string' || message.cove.length < 16) return null
  if (nonce !== null && message.cove !== nonce) return null
  const { render, export: kind } = message
  if (isRecord(render)) {
    const { data, theme, locale, fill } = render
    if (!kinds.includes(String(render.kind)) || typeof locale !== 'string' || !/^[\w-]{1,35}$/.test(locale)) return null
    return {
      cove: message.cove,
      render: {
        kind: render.kind as Kind,
        data,
        theme: theme === 'dark' ? 'dark' : 'light',
        locale,
        fill: fill === true,
      },
    }
  }
  if (isRecord(message.widgets)) return { cove: message.cove, widgets: readNews(message.widgets) }
  return exports_.includes(String(kind)) ? { cove: message.cove, export: kind as Export } : null
}

function readNews(news: Record<string, unknown>): NonNullable<In['widgets']> {
  return {
    ...(news.models ? { models: models(news.models) } : {}),
    ...(news.closed ? { closed: readClosed(news.closed) } : {}),
    ...(news.quiet === true ? { quiet: true } : {}),
    ...(typeof news.done === 'number' ? { done: news.done } : {}),
  }
}

/** A move that is small, and JSON: either a state or a content. */
function readMove(move: Record<string, unknown>): Move | null {
  const { n, widget, state, content } = move
  if (typeof n !== 'number' || !Number.isSafeInteger(n)) return null
  if (typeof widget !== 'string' || !/^[!-~]{1,128}$/.test(widget)) return null
  try {
    const text = JSON.stringify(state === undefined ? content : state)
    if (text === undefined || text.length > limits.move || (state !== undefined && !isRecord(state))) return null
    return state === undefined ? { n, widget, content: JSON.parse(text) } : { n, widget, state: JSON.parse(text) }
  } catch {
    return null
  }
}

export function readOut(message: unknown, nonce: string): Out | null {
  if (!isRecord(message) || message.cove !== nonce) return null
  const out: Out = { cove: nonce }
  if (typeof message.height === 'number' && Number.isFinite(message.height)) out.height = clamp(message.height)
  if (typeof message.link === 'string' && message.link.length <= limits.link) out.link = message.link
  if (typeof message.failed === 'string') out.failed = message.failed.slice(0, limits.failed)
  if (message.refused === true) out.refused = true
  if (message.leave === true) out.leave = true
  if (isRecord(message.move)) {
    const move = readMove(message.move)
    if (move) out.move = move
  }
  const e = message.exported
  if (isRecord(e) && exports_.includes(String(e.kind)) && e.bytes instanceof ArrayBuffer) {
    if (e.bytes.byteLength <= limits.exported) out.exported = { kind: e.kind as Export, bytes: e.bytes }
  }
  return out
}

export function clamp(height: number): number {
  return Math.round(Math.min(heights.most, Math.max(heights.least, height)))
}

/** How much a chart is, counted no further than needed: points in lists, and roughly the bytes. */
export function weigh(data: unknown): { bytes: number; points: number; deep: boolean } {
  const out = { bytes: 0, points: 0, deep: false }
  const stack: [unknown, number][] = [[data, 0]]
  while (stack.length > 0 && out.bytes < 100_000_000) {
    const [v, depth] = stack.pop() as [unknown, number]
    if (depth > 100) {
      out.deep = true
      return out
    }
    if (typeof v === 'string') out.bytes += v.length
    else if (Array.isArray(v)) {
      out.points += v.length
      out.bytes += v.length * 8
      for (const item of v) if (item !== null && typeof item !== 'number') stack.push([item, depth + 1])
    } else if (isRecord(v)) {
      if (typeof v.bdata === 'string') out.points += v.bdata.length / 10
      for (const [k, item] of Object.entries(v)) {
        out.bytes += k.length + 4
        stack.push([item, depth + 1])
      }
    } else out.bytes += 8
  }
  return out
}
