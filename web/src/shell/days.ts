export type Day = 'today' | 'yesterday' | 'week' | 'older'

/** Things by the day of their last use; they come the newest first. */
export function byDay<T extends { used_at: string }>(items: readonly T[], now: Date): { day: Day; items: T[] }[] {
  const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate())
  const before = (days: number) =>
    new Date(midnight.getFullYear(), midnight.getMonth(), midnight.getDate() - days).getTime()
  const dayOf = (at: number): Day =>
    at >= midnight.getTime() ? 'today' : at >= before(1) ? 'yesterday' : at >= before(6) ? 'week' : 'older'
  const groups: { day: Day; items: T[] }[] = []
  for (const item of items) {
    const day = dayOf(Date.parse(item.used_at))
    const last = groups.at(-1)
    if (last?.day === day) last.items.push(item)
    else groups.push({ day, items: [item] })
  }
  return groups
}
