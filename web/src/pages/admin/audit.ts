import type { Schemas } from '../../api/client'

export type Row = Schemas['Row']

export interface Filter {
  who: string
  what: string
  from: string
  to: string
  result: '' | 'ok' | 'refused'
}

export const noFilter: Filter = { who: '', what: '', from: '', to: '', result: '' }

export const isSet = (f: Filter) => Object.values(f).some((v) => v !== '')

const has = (text: string, ...cells: (string | undefined)[]) => {
  const low = text.trim().toLowerCase()
  return !low || cells.some((c) => c?.toLowerCase().includes(low))
}

/** Whether a row is wanted. Days are those of the person's own clock. */
export function fits(row: Row, f: Filter, nameOf: (id: string) => string): boolean {
  const at = Date.parse(row.at)
  return (
    has(f.who, row.user, nameOf(row.user), row.key, row.ip) &&
    has(f.what, row.action, row.target, row.target && nameOf(row.target)) &&
    (!f.from || at >= new Date(`${f.from}T00:00:00`).getTime()) &&
    (!f.to || at <= new Date(`${f.to}T23:59:59.999`).getTime()) &&
    (!f.result || (row.outcome === 'ok') === (f.result === 'ok'))
  )
}

/** Whether rows before the last that was read cannot be wanted: rows come the newest first. */
export const isOver = (last: Row | undefined, f: Filter) =>
  !!last && !!f.from && Date.parse(last.at) < new Date(`${f.from}T00:00:00`).getTime()
