interface Node {
  id: string
  parent?: string
  tries?: { of?: string; chosen?: string }
}

/** A turn is one of several tries of another one. */
export const isTry = (t: Node) => !!t.tries?.of

/** The branch that goes through a turn, to its newest end; without one, the branch of the newest turn. Turns come the oldest first. Tries are in no branch, unless it is asked for one. */
export function branchThrough<T extends Node>(turns: readonly T[], through?: string | null): T[] {
  const byId = new Map(turns.map((t) => [t.id, t]))
  const newest = new Map<string, T>()
  for (const t of turns) if (t.parent && !isTry(t)) newest.set(t.parent, t)
  const at = (through && byId.get(through)) || turns.findLast((t) => !isTry(t))
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

/** The versions of a question, this turn among them: the turns after the same parent. The tries of one come after it, but for the try that it has the answer of. First questions go on from none. */
export function versionsOf<T extends Node>(turns: readonly T[], turn: T): T[] {
  const of = turn.tries?.of ?? turn.id
  return turns
    .filter((t) => !isTry(t) && (t.id === of || (t.parent ?? '') === (turn.parent ?? '')))
    .flatMap((t) => [t, ...turns.filter((o) => o.tries?.of === t.id && (o.id === turn.id || o.id !== t.tries?.chosen))])
}
