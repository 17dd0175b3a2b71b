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

const midnight = (day: string, later = 0) => {
  const at = new Date(`${day}T00:00:00`)
  at.setDate(at.getDate() + later)
  return at.toISOString()
}

/** What of a filter the server is asked. Days are those of the person's own clock. */
export const askedOf = (f: Filter) => ({
  ...(f.from ? { from: midnight(f.from) } : {}),
  ...(f.to ? { to: midnight(f.to, 1) } : {}),
  ...(f.result ? { outcome: f.result } : {}),
})

/** Whether a row that came has the texts that are wanted; people look for names, which rows do not have. */
export const fits = (row: Row, f: Filter, nameOf: (id: string) => string) =>
  has(f.who, row.user, nameOf(row.user), row.key, row.ip) &&
  has(f.what, row.action, row.target, row.target && nameOf(row.target))
