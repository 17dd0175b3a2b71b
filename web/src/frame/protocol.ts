// What the page and the frame of a chart say to each other. Both read what they get as hostile.

export type Kind = 'plotly' | 'vega' | 'vega-lite' | 'html' | 'scripts'
export type Export = 'png' | 'svg' | 'csv'

/** From the page. The first message has the nonce that all others must have, in both directions. */
export interface In {
  cove: string
  render?: { kind: Kind; data: unknown; theme: 'light' | 'dark'; locale: string; fill: boolean }
  export?: Export
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
}

export const heights = { least: 80, most: 2000 }
export const limits = { exported: 100_000_000, link: 8000, failed: 500 }

const kinds: readonly string[] = ['plotly', 'vega', 'vega-lite', 'html', 'scripts']
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
  return exports_.includes(String(kind)) ? { cove: message.cove, export: kind as Export } : null
}

export function readOut(message: unknown, nonce: string): Out | null {
  if (!isRecord(message) || message.cove !== nonce) return null
  const out: Out = { cove: nonce }
  if (typeof message.height === 'number' && Number.isFinite(message.height)) out.height = clamp(message.height)
  if (typeof message.link === 'string' && message.link.length <= limits.link) out.link = message.link
  if (typeof message.failed === 'string') out.failed = message.failed.slice(0, limits.failed)
  if (message.refused === true) out.refused = true
  if (message.leave === true) out.leave = true
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
