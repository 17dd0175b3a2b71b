/** One cell: its code, and the execution that it had last. */
export interface Cell {
  key: string
  /** Python when it is not said. */
  kind?: 'markdown'
  code: string
  ran: string
  execution: string
  /** Where it ran; the notebook's own session when it is not said. */
  session?: string
  /** When it was run; grows with each run of the notebook. */
  at: number
}

export interface Ran {
  id: string
  code: string
  session?: string
}

/** The cells that were kept, with the executions that they do not know behind them. */
export function merge(kept: readonly Cell[], executions: readonly Ran[], known: ReadonlySet<string>): Cell[] {
  const have = new Set([...kept.map((c) => c.execution), ...known])
  const order = new Map(executions.map((e, i) => [e.id, i + 1]))
  const cells = kept.map((c) => ({ ...c, at: order.get(c.execution) ?? c.at }))
  for (const e of executions)
    if (!have.has(e.id))
      cells.push({
        key: e.id,
        code: e.code.trimEnd(),
        ran: e.code.trimEnd(),
        execution: e.id,
        ...(e.session ? { session: e.session } : {}),
        at: order.get(e.id) ?? 0,
      })
  return cells
}

/** The keys of cells that ran before a cell above them ran again, or before Python was started anew. */
export function stale(cells: readonly Cell[], restart = 0): Set<string> {
  const old = new Set<string>()
  let latest = restart
  for (const c of cells) {
    if (!c.execution || c.kind) continue
    if (c.at < latest || c.at <= restart) old.add(c.key)
    latest = Math.max(latest, c.at)
  }
  return old
}

export const at = (cells: readonly Cell[], key: string) => cells.findIndex((c) => c.key === key)

export function insert(cells: readonly Cell[], index: number, cell: Cell): Cell[] {
  const to = Math.max(0, Math.min(index, cells.length))
  return [...cells.slice(0, to), cell, ...cells.slice(to)]
}

export function move(cells: readonly Cell[], key: string, by: number): Cell[] {
  const from = at(cells, key)
  const to = from + by
  const cell = cells[from]
  if (!cell || to < 0 || to >= cells.length) return [...cells]
  return insert(
    cells.filter((c) => c !== cell),
    to,
    cell,
  )
}

export function change(cells: readonly Cell[], key: string, to: Partial<Cell>): Cell[] {
  return cells.map((c) => (c.key === key ? { ...c, ...to } : c))
}

export function turnInto(cells: readonly Cell[], key: string, kind: 'markdown' | undefined): Cell[] {
  return cells.map((c) => {
    if (c.key !== key || c.kind === kind) return c
    const { kind: _, ...rest } = c
    // Text has no output; the code that it may become again has not run.
    return kind ? { ...rest, kind, ran: '', execution: '', at: 0 } : rest
  })
}

/** What is to be run, from a cell to the end. */
export function runnable(cells: readonly Cell[], from = 0): string[] {
  return cells.slice(Math.max(0, from)).flatMap((c) => (!c.kind && c.code.trim() ? [c.key] : []))
}
