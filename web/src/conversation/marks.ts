import type { Turn } from '../api/client'

// What people did after turns: steps that they ran again, and turns that they took back.

type Marked = Pick<Turn, 'id' | 'created_at'> & {
  finished_at?: string | undefined
  reruns?: { step: number; at: string }[] | undefined
  undone?: { from: string } | undefined
}

const when = (at: string | undefined) => (at ? Date.parse(at) : 0)
const ended = (t: Marked) => when(t.finished_at) || when(t.created_at)

/** The turns of a branch whose answers were written before a step of theirs, or of a turn above, ran again. */
export function outdatedOf(branch: readonly Marked[]): Set<string> {
  const out = new Set<string>()
  let last = 0
  for (const t of branch) {
    for (const r of t.reruns ?? []) last = Math.max(last, when(r.at))
    if (last > ended(t)) out.add(t.id)
  }
  return out
}

/** Whether a step of a turn ran before one above it ran again. */
export function isStaleStep(branch: readonly Marked[], turn: string, step: number): boolean {
  const place = branch.findIndex((t) => t.id === turn)
  const own = branch[place]
  if (!own) return false
  const again = own.reruns?.find((r) => r.step === step)
  const ran = again ? when(again.at) : ended(own)
  return branch
    .slice(0, place + 1)
    .some((t) => t.reruns?.some((r) => when(r.at) > ran && (t.id !== turn || r.step < step)))
}

/** The turns of a branch that were taken back: from one to the turn that says so. */
export function undoneOf(branch: readonly Marked[]): Set<string> {
  const out = new Set<string>()
  for (const [at, t] of branch.entries()) {
    const from = t.undone ? branch.findIndex((b) => b.id === t.undone?.from) : -1
    if (from >= 0) for (const b of branch.slice(from, at + 1)) out.add(b.id)
  }
  return out
}
