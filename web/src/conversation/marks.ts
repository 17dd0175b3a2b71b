import type { Turn } from '../api/client'

// What people did after turns: steps that they ran again, and turns that they took back.

interface Mark {
  step: number
  at: string
  /** In which it ran; missing: that of the turn of the step. */
  session?: string | undefined
}

type Marked = Pick<Turn, 'id' | 'created_at'> & {
  finished_at?: string | undefined
  session?: string | undefined
  origin?: { session?: string | undefined } | undefined
  reruns?: Mark[] | undefined
  undone?: { from: string } | undefined
}

// All times are the server's: the clock of this machine may be another.
const when = (at: string | undefined) => (at ? Date.parse(at) : 0)
const ended = (t: Marked) => when(t.finished_at) || when(t.created_at)

const sessionOf = (r: Mark, t: Marked) => r.session || t.session || ''
/** Where the steps of a turn ran. A copy in a fork of a conversation has what ran in the session that it was asked in, too. */
const sessionsOf = (t: Marked) => [t.session || '', ...(t.origin?.session ? [t.origin.session] : [])]

/** The turns of a branch whose answers were written before a step of theirs, which is shown as it ran again, or one of a turn above, in their session. */
export function outdatedOf(branch: readonly Marked[]): Set<string> {
  const out = new Set<string>()
  const last = new Map<string, number>()
  for (const t of branch) {
    for (const r of t.reruns ?? []) last.set(sessionOf(r, t), Math.max(last.get(sessionOf(r, t)) ?? 0, when(r.at)))
    const above = sessionsOf(t).map((s) => last.get(s) ?? 0)
    const own = (t.reruns ?? []).map((r) => when(r.at))
    if (Math.max(...above, ...own) > ended(t)) out.add(t.id)
  }
  return out
}

/** Whether a step of a turn ran before one above it ran again: of the same turn, or of another in their session. */
export function isStaleStep(branch: readonly Marked[], turn: string, step: number): boolean {
  const place = branch.findIndex((t) => t.id === turn)
  const own = branch[place]
  if (!own) return false
  const again = own.reruns?.find((r) => r.step === step)
  const ran = again ? when(again.at) : ended(own)
  const where = again ? [sessionOf(again, own)] : sessionsOf(own)
  const reaches = (r: Mark, t: Marked) => (!again && t === own) || where.includes(sessionOf(r, t))
  return branch
    .slice(0, place + 1)
    .some((t) => t.reruns?.some((r) => when(r.at) > ran && (t !== own || r.step < step) && reaches(r, t)))
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
