interface Node {
  id: string
  parent?: string
}

/** The branch that goes through a turn, to its newest end; without one, the branch of the newest turn. Turns come the oldest first. */
export function branchThrough<T extends Node>(turns: readonly T[], through?: string | null): T[] {
  const byId = new Map(turns.map((t) => [t.id, t]))
  const newest = new Map<string, T>()
  for (const t of turns) if (t.parent) newest.set(t.parent, t)
  const at = (through && byId.get(through)) || turns.at(-1)
  if (!at) return []
  const branch: T[] = []
  const seen = new Set<string>()
  for (let t: T | undefined = at; t && !seen.has(t.id); t = t.parent ? byId.get(t.parent) : undefined) {
    seen.add(t.id)
    branch.unshift(t)
  }
  for (let t = newest.get(at.id); t && !seen.has(t.id); t = newest.get(t.id)) {
    seen.add(t.id)
    branch.push(t)
  }
  return branch
}

/** The turns behind the same parent, this one among them. */
export const siblings = <T extends Node>(turns: readonly T[], turn: T): T[] =>
  turns.filter((t) => (t.parent ?? '') === (turn.parent ?? ''))
