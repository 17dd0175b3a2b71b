const units = ['B', 'kB', 'MB', 'GB', 'TB']

export function bytes(n: number): string {
  let at = 0
  let value = n
  while (value >= 1000 && at < units.length - 1) {
    value /= 1000
    at++
  }
  return `${at === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[at]}`
}

export function seconds(n: number): string {
  if (n < 0.05) return '< 0.1 s'
  if (n < 60) return `${n.toFixed(1)} s`
  const m = Math.floor(n / 60)
  if (m < 60) return `${m} min ${Math.round(n % 60)} s`
  return `${Math.floor(m / 60)} h ${m % 60} min`
}

export const count = (n: number, lang: string) =>
  new Intl.NumberFormat(lang, n >= 1_000_000 ? { notation: 'compact', maximumFractionDigits: 1 } : {}).format(n)

/** An amount of money, with the more decimals the less it is: prices of a question are often below a cent. */
export function money(amount: number, currency: string, lang: string): string {
  const size = Math.abs(amount)
  const most = size === 0 || size >= 1 ? 2 : size >= 0.01 ? 4 : 6
  return new Intl.NumberFormat(lang, {
    style: 'currency',
    currency,
    minimumFractionDigits: 2,
    maximumFractionDigits: most,
  }).format(amount)
}

export const percent = (part: number, lang: string) =>
  new Intl.NumberFormat(lang, { style: 'percent', maximumFractionDigits: 0 }).format(part)

export const moment = (at: string, lang: string) =>
  new Intl.DateTimeFormat(lang, { dateStyle: 'medium', timeStyle: 'short' }).format(new Date(at))

export const clock = (at: string, lang: string) =>
  new Intl.DateTimeFormat(lang, { timeStyle: 'short' }).format(new Date(at))

export const day = (at: string, lang: string) =>
  new Intl.DateTimeFormat(lang, { dateStyle: 'medium' }).format(new Date(at))

/** A name without marks that turn the direction of text around it. */
export const plainName = (name: string) => name.replace(/[\u202a-\u202e\u2066-\u2069]/g, '').replace(/[\r\n]+/g, ' ')
