import type { Schemas } from '../../api/client'

type Found = Schemas['Found']

export interface Group {
  id: string
  first: Found
  /** Further places in the same conversation, or notebook. */
  more: Found[]
  /** Conversations that have the same in the same places, as forks do. */
  copies: string[]
}

const placeOf = (f: Found) => f.conversation || f.session || ''
const saidOf = (f: Found) => `${f.field}\n${f.snippet}`

/** Places by their conversations, in the order of their first ones; what says no other than an earlier conversation is told with that. */
export function grouped(found: readonly Found[]): Group[] {
  const all = new Map<string, Found[]>()
  for (const f of found) all.set(placeOf(f), [...(all.get(placeOf(f)) ?? []), f])
  const groups: (Group & { said: Set<string> })[] = []
  for (const [id, hits] of all) {
    const [first, ...more] = hits
    if (!first) continue
    const said = new Set(hits.map(saidOf))
    const same = groups.find((g) => [...said].every((s) => g.said.has(s)))
    if (same) same.copies.push(id)
    else groups.push({ id, first, more, copies: [], said })
  }
  return groups.map(({ said: _, ...g }) => g)
}
