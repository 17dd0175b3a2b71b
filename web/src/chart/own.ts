import type { Execution, Turn } from '../api/client'
import { type Marked, readMarked } from './settings'

// Charts that people made, as steps of their own: executions of the conversation's sessions that no turn has, with settings before their code.

export interface Version extends Marked {
  execution: Pick<Execution, 'id' | 'session' | 'code' | 'created_at' | 'state'>
}

export interface OwnChart {
  id: string
  /** The oldest first. The last one says whether it was removed. */
  versions: Version[]
}

type Ran = Pick<Execution, 'id' | 'session' | 'code' | 'created_at' | 'state' | 'turn'>
type Of = Pick<Turn, 'id' | 'created_at' | 'session' | 'origin' | 'undone'>

/** The sessions in which charts of a branch can be. */
export const sessionsOf = (branch: readonly Of[], session: string | undefined): string[] => [
  ...new Set(
    [...branch.flatMap((t) => [t.session, t.origin?.session, t.undone?.session]), session].flatMap((s) => s ?? []),
  ),
]

/** The charts of executions, the oldest first. */
export function chartsOf(executions: readonly Ran[]): OwnChart[] {
  const found = new Map<string, OwnChart>()
  const inOrder = [...executions].sort(
    (a, b) => Date.parse(a.created_at) - Date.parse(b.created_at) || (a.id < b.id ? -1 : 1),
  )
  for (const execution of inOrder) {
    const read = execution.turn ? null : readMarked(execution.code)
    if (!read) continue
    const { id } = read.settings
    const chart = found.get(id) ?? { id, versions: [] }
    chart.versions.push({ ...read, execution })
    found.set(id, chart)
  }
  return [...found.values()]
}

/** Which turn of a branch a chart stands after: the one that it names, or else the last one that was asked before it. */
export function turnOf(chart: OwnChart, branch: readonly Of[]): string | null {
  const [first] = chart.versions
  if (!first) return null
  const { after } = first.settings
  if (after) return branch.find((t) => t.id === after || t.origin?.turn === after)?.id ?? null
  const at = Date.parse(first.execution.created_at)
  return branch.findLast((t) => Date.parse(t.created_at) <= at)?.id ?? null
}

export const isRemoved = (chart: OwnChart) => chart.versions.at(-1)?.settings.removed === true
/** The versions that show something. */
export const drawn = (chart: OwnChart) => chart.versions.filter((v) => !v.settings.removed)
