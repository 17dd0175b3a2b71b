import type { Schemas } from '../../api/client'

export type Quota = Schemas['Quota']
export type Limit = Exclude<keyof Quota, 'network' | 'code' | 'redact'>

export const limits: readonly Limit[] = [
  'live_sessions',
  'concurrent_executions',
  'cpu_seconds_per_day',
  'disk_bytes',
  'tokens_per_day',
]

/** The rules of a quota for the network, for code and for what is redacted, which numbers that are saved leave as they are. */
export const rulesOf = (quota: Quota | undefined): Quota => ({
  ...(quota?.network ? { network: quota.network } : {}),
  ...(quota?.code ? { code: quota.code } : {}),
  ...(quota?.redact ? { redact: quota.redact } : {}),
})

/** Where sessions may connect to, as a line; null where the quota does not say. */
export const reachOf = (quota: Quota | undefined): string | null =>
  quota?.network
    ? [...(quota.network.allow ?? []), ...(quota.network.deny ?? []).map((rule) => `− ${rule}`)].join(', ')
    : null

/** What one of the units that people write stands for in the API. */
const units: Partial<Record<Limit, number>> = { cpu_seconds_per_day: 3600, disk_bytes: 1_000_000 }

export const unitOf = (limit: Limit): 'hours' | 'mb' | null =>
  limit === 'cpu_seconds_per_day' ? 'hours' : limit === 'disk_bytes' ? 'mb' : null

/** A number of the API as people write it: hours, MB, or itself. */
export const shownLimit = (limit: Limit, n: number | undefined): string =>
  n ? String(Number((n / (units[limit] ?? 1)).toPrecision(12))) : ''

/** The limits of a form, in the units of the API; a field that is empty or 0 sets none. Null where one is no number. */
export function quotaOf(form: Record<string, string>): Quota | null {
  const quota: Quota = {}
  for (const limit of limits) {
    const text = (form[limit] ?? '').trim().replace(',', '.')
    if (!text) continue
    const n = Number(text)
    if (!Number.isFinite(n) || n < 0) return null
    const unit = units[limit] ?? 1
    const value = limit === 'cpu_seconds_per_day' ? n * unit : Math.round(n * unit)
    if (!Number.isSafeInteger(Math.floor(value)) || (n > 0 && value === 0)) return null
    if (value > 0) quota[limit] = value
  }
  return quota
}
