import type { Export } from './protocol'

export interface Chart {
  export: (kind: Export) => Promise<Blob>
}

export interface Request {
  data: unknown
  theme: 'light' | 'dark'
  locale: string
  fill: boolean
}

export type Json = Record<string, unknown>
export const record = (v: unknown): Json =>
  v !== null && typeof v === 'object' && !Array.isArray(v) ? (v as Json) : {}

export function csv(columns: [string, ArrayLike<unknown>][]): Blob {
  const cell = (v: unknown) => {
    const t =
      v === null || v === undefined
        ? ''
        : v instanceof Date
          ? v.toISOString()
          : typeof v === 'object'
            ? JSON.stringify(v)
            : String(v)
    return /[",\r\n]/.test(t) ? `"${t.replaceAll('"', '""')}"` : t
  }
  const rows = columns.reduce((n, [, values]) => Math.max(n, values.length), 0)
  const lines = [columns.map(([name]) => cell(name)).join(',')]
  for (let i = 0; i < Math.min(rows, 1_000_000); i++) lines.push(columns.map(([, values]) => cell(values[i])).join(','))
  return new Blob([lines.join('\r\n'), '\r\n'], { type: 'text/csv' })
}

export function fromDataUrl(url: string): Blob {
  const comma = url.indexOf(',')
  const [head, body] = [url.slice(0, comma), url.slice(comma + 1)]
  const type = /^data:([\w/+.-]+)/.exec(head)?.[1] ?? ''
  if (!head.endsWith(';base64')) return new Blob([decodeURIComponent(body)], { type })
  return new Blob([Uint8Array.from(atob(body), (c) => c.charCodeAt(0))], { type })
}
