import { client, data, type Schemas } from '../api/client'

export type Report = Schemas['CheckReport']
export type Finding = Schemas['Finding']

/** What is looked at: a file of a workspace, or the last of programs that one interpreter runs one after the other. */
export type Checked = { session: string; path: string } | { programs: readonly string[] }

export interface Asked {
  measure: boolean
  profile: boolean
}

// What says nothing of one program among several: names and imports may be those of the others.
const passedOver = ['F401', 'F811', 'F821', 'F841']
// The server takes 1 MiB of code.
const most = 900_000

/** A notebook of the last programs that the server takes at once. */
export function notebookOf(programs: readonly string[]): { code: string; cells: number } {
  let size = 0
  const kept: string[] = []
  for (const program of programs.toReversed()) {
    size += new TextEncoder().encode(program).length
    if (kept.length && size > most) break
    kept.unshift(program)
  }
  const cells = kept.map((source) => ({
    cell_type: 'code',
    source,
    metadata: {},
    outputs: [],
    execution_count: null,
  }))
  return { code: JSON.stringify({ nbformat: 4, nbformat_minor: 5, metadata: {}, cells }), cells: cells.length }
}

/** The findings of the last cell, as those of a program by itself. */
export function ofLast(report: Report, cells: number): Report {
  const items = report.items.filter((f) => f.cell === cells)
  return { ...report, items: items.map(({ cell: _, ...f }) => f) }
}

export async function checkCode(what: Checked, asked: Asked, signal: AbortSignal): Promise<Report> {
  const run = async (body: Partial<Schemas['NewCheck']>): Promise<Report> => {
    const { findings } = await data(client.POST('/checks', { body: { kind: 'findings', ...body }, signal }))
    return findings ?? { file: '', items: [], notes: [] }
  }
  const more = { ...(asked.measure ? { measure: true } : {}), ...(asked.profile ? { profile: true } : {}) }
  if ('session' in what) return run({ session: what.session, path: what.path, ...more })
  const { code, cells } = notebookOf(what.programs)
  return ofLast(await run({ name: 'steps.ipynb', code, ignore: passedOver, ...more }), cells)
}
