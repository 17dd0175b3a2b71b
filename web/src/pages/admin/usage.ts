import type { Schemas } from '../../api/client'
import type { Words } from '../../words'

export type Day = Schemas['Usage']
export type Used = Omit<Day, 'day'>

/** What the numbers of cellsOf are, in the person's language. */
export const headOf = (u: Words['admin']['usage']) => [
  u.turns,
  u.executions,
  u.cpu,
  u.wall,
  u.input,
  u.output,
  u.uploads,
]

export const cellsOf = (r: Used) => [
  r.turns,
  r.executions,
  Number(r.cpu_seconds.toFixed(3)),
  Number(r.wall_seconds.toFixed(3)),
  r.input_tokens,
  r.output_tokens,
  r.upload_bytes,
]

const dayMs = 86_400_000

/** The date of the day in UTC, some days before another. */
export const dayBefore = (at: number, days: number) => new Date(at - days * dayMs).toISOString().slice(0, 10)

const zero = {
  cpu_seconds: 0,
  executions: 0,
  input_tokens: 0,
  output_tokens: 0,
  turns: 0,
  upload_bytes: 0,
  wall_seconds: 0,
}

/** One row for each day of a range, the oldest first: the server leaves out days without use. */
export function filled(rows: readonly Day[], days: number, now: number): Day[] {
  const known = new Map(rows.map((r) => [r.day.slice(0, 10), r]))
  return Array.from({ length: days }, (_, i) => {
    const day = dayBefore(now, days - 1 - i)
    return { ...zero, ...known.get(day), day }
  })
}

/** The currency of the last day that has a cost; costs of several are no sum. */
export const currencyOf = (rows: readonly Used[]) => rows.findLast((r) => r.currency)?.currency

/** The least of 1, 2 or 5 times a power of ten that is not below n: what an axis goes up to. */
export function roof(n: number): number {
  if (!(n > 0)) return 1
  const power = 10 ** Math.floor(Math.log10(n))
  for (const times of [1, 2, 5, 10]) if (n <= times * power * (1 + 1e-9)) return times * power
  return 10 * power
}
