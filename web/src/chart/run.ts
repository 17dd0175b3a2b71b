import { useQueries } from '@tanstack/react-query'
import { createContext, useMemo } from 'react'
import { client, data, type Execution, insist, once, type Turn } from '../api/client'
import { queries } from '../api/queries'
import { chartsOf, type OwnChart, sessionsOf, turnOf } from './own'
import type { Marked } from './settings'
import { kernel, type Source } from './source'

export interface Opening {
  name: string
  find: () => Promise<Source | null>
  /** What there is already. */
  start?: Marked
  /** Runs the code, where it is not a step of its own. */
  run?: (code: string) => void
  onDrawn?: () => void
}

/** How charts are made here. Null: nobody here may run code, or there is no session. */
export interface Charting {
  /** Opens the settings for a table, or those of a chart that is there. */
  open: (what: Opening) => void
}
export const ChartingContext = createContext<Charting | null>(null)

/** In which session the table of a form is. */
export const ChartSessionContext = createContext('')

/** What was drawn last, in this window: its step comes into sight when it is there. */
let fresh = ''
export const isFresh = (execution: string) => {
  if (!execution || fresh !== execution) return false
  fresh = ''
  return true
}

const keyOf = (session: string) => ['executions', session, 'charts']
/** Of a session, the newest. */
const mostPages = 20

/** What was read of a session: the executions without a turn, and the newest one of all that had ended then with those before it. */
const read = new Map<string, { list: Execution[]; upTo: string }>()
const goes = (e: Execution) => e.state === 'running' || e.state === 'queued'

/** Reads what a session ran since the last time. Steps of turns are read with their turns. */
async function executionsOf(session: string): Promise<Execution[]> {
  const before = read.get(session)
  const fresh: Execution[] = []
  let after: string | undefined
  for (let page = 0; page < mostPages; page++) {
    const query = { limit: 100, ...(after ? { after } : {}) }
    const got = await data(client.GET('/sessions/{session}/executions', { params: { path: { session }, query } }))
    const known = before ? got.items.findIndex((e) => e.id === before.upTo) : -1
    fresh.push(...(known < 0 ? got.items : got.items.slice(0, known)))
    after = got.next
    if (known >= 0 || !after) break
  }
  const ids = new Set(fresh.map((e) => e.id))
  const list = [...fresh.filter((e) => !e.turn), ...(before?.list ?? []).filter((e) => !ids.has(e.id))]
  const upTo = fresh[fresh.findLastIndex(goes) + 1]?.id ?? before?.upTo ?? ''
  read.set(session, { list, upTo })
  return list
}

/** Runs the code of a chart, which goes on whether or not the page stays. */
export async function runChart(session: string, code: string): Promise<Execution> {
  const header = once()
  const made = (await insist(() =>
    data(
      client.POST('/sessions/{session}/executions', {
        params: { path: { session }, query: { background: true }, header },
        body: { code, kernel, approved: true }, // a person has chosen what it draws, and sees it
      }),
    ),
  )) as Execution
  fresh = made.id
  queries.setQueryData<Execution[]>(keyOf(session), (known) => [...(known ?? []).filter((e) => e.id !== made.id), made])
  void queries.invalidateQueries({ queryKey: ['executions', session] })
  return made
}

/** The charts that people made in the sessions of a branch, by the turns that they stand after. */
export function useOwnCharts(branch: readonly Turn[], session: string | undefined): ReadonlyMap<string, OwnChart[]> {
  const sessions = sessionsOf(branch, session)
  const lists = useQueries({
    queries: sessions.map((s) => ({ queryKey: keyOf(s), queryFn: () => executionsOf(s), retry: false })),
    combine: (all) => all.map((q) => q.data),
  })
  return useMemo(() => {
    const out = new Map<string, OwnChart[]>()
    for (const chart of chartsOf(lists.flatMap((l) => l ?? []))) {
      const turn = turnOf(chart, branch)
      if (turn) out.set(turn, [...(out.get(turn) ?? []), chart])
    }
    return out
  }, [lists, branch])
}
