import type { Schemas } from '../../api/client'

type Found = Schemas['Found']

export interface Group {
  id: string
  first: Found
  /** Further places in the same conversation or notebook, and what is in its copies alone. */
  more: Found[]
  /** Of each other conversation of the same origin that has some of these places, too: the first of them. */
  copies: Found[]
}

const placeOf = (f: Found) => f.conversation || f.session || ''
const saidOf = (f: Found) => `${f.field}\n${f.snippet}`

const mostAsked = 100

/** Conversations, and what they are forks of, as far as originOf knows it. */
export function withOrigins(conversations: readonly string[], originOf: (id: string) => string | undefined): string[] {
  const all = new Set(conversations)
  for (const id of all) {
    const origin = originOf(id)
    if (origin && all.size < mostAsked) all.add(origin)
  }
  return [...all]
}

/** The conversation that a fork, or a fork of one, was made from first. */
function rootOf(id: string, originOf: (id: string) => string | undefined): string {
  const seen = new Set([id])
  for (let at = originOf(id); at && !seen.has(at); at = originOf(at)) seen.add(at)
  return [...seen].at(-1) ?? id
}

/** Places by their conversations, in the order of their first ones. Forks are told with what they are of: only those, however much others say the same. */
export function grouped(found: readonly Found[], originOf: (id: string) => string | undefined): Group[] {
  const families = new Map<string, Found[]>()
  for (const f of found) {
    const root = f.conversation ? rootOf(f.conversation, originOf) : placeOf(f)
    families.set(root, [...(families.get(root) ?? []), f])
  }
  return [...families].flatMap(([id, hits]) => {
    const [first] = hits
    if (!first) return []
    const own = hits.filter((f) => placeOf(f) === placeOf(first))
    const said = new Set(own.map(saidOf))
    const more = own.slice(1)
    const copies = new Map<string, Found>()
    for (const f of hits) {
      if (placeOf(f) === placeOf(first)) continue
      if (!said.has(saidOf(f))) more.push(f)
      else if (!copies.has(placeOf(f))) copies.set(placeOf(f), f)
      said.add(saidOf(f))
    }
    return { id, first, more, copies: [...copies.values()] }
  })
}
