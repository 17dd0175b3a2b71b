import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { client, data, type Turn } from '../api/client'
import { useMe, useSession } from '../api/queries'
import type { Offer } from '../composer/Suggestions'
import { columnsOf, type Known } from '../composer/suggest'
import { turnLive, useLive } from '../events/live'
import { steps } from '../events/turn'
import { pieceOf } from '../output/sheet'
import { may } from '../pages/admin/rights'
import { readerOf } from '../panels/tables'

const kernel = 'main'
const rows = 100
const mostTables = 2
const isTable = (path: string) => /\.(csv|tsv|xlsx|parquet)$/i.test(path)

function knownOf(name: string, from: unknown): Known[] {
  const piece = pieceOf(from)
  if (!piece) return []
  const cells = piece.rows.map((r) => r.slice(1))
  const columns = columnsOf(piece.names, cells, piece.types)
  return columns.length ? [{ name, columns }] : []
}

/** The newest tables that Python has. What cannot be read is nothing to ask about. */
async function variablesOf(session: string, signal: AbortSignal): Promise<Known[]> {
  const path = { session, kernel }
  const list = await data(client.GET('/sessions/{session}/kernels/{kernel}/variables', { params: { path }, signal }))
  const names = list.items.filter((v) => v.table && !v.name.startsWith('_')).map((v) => v.name)
  const reader = readerOf(session, kernel)
  const query = { offset: 0, limit: rows, sort: '', descending: false, filter: '' }
  const all: Known[] = []
  for (const name of names.slice(-mostTables).reverse())
    all.push(...knownOf(name, await reader.read(name, query, signal)))
  return all
}

async function fileOf(session: string, path: string, signal: AbortSignal): Promise<Known[]> {
  const params = { path: { session }, query: { path, limit: rows } }
  const { table } = await data(client.GET('/sessions/{session}/preview', { params, signal }))
  return knownOf(path, table)
}

/** What the next question may be about when the last answer is there: the tables that Python has, or else a table that the answer made or that was sent. */
export function useOffer(session: string | undefined, branch: readonly Turn[], busy: boolean): Offer | undefined {
  const me = useMe().data
  const last = branch.at(-1)
  const over = !!last && last.state === 'completed' && !busy
  const ready = useSession(session).data
  const live = useMemo(() => (over && last.last_event > 0 ? turnLive(last.id, false) : null), [over, last])
  useLive(live)
  const loaded = !live || live.loaded
  const made = live ? steps(live.view).flatMap((s) => s.files.map((f) => f.path)) : []
  const sent = branch.flatMap((t) => t.files?.map((f) => f.name) ?? [])
  const file = [...sent, ...made].findLast(isTable)
  // A look would wake a session that is paused.
  const awake = !!ready && !['paused', 'lost', 'deleted'].includes(ready.state)
  const wanted = over && loaded && awake && !!session && !!me && may(me, 'sessions:execute')
  // A kernel whose code runs, as of a step that a person runs again, answers nothing else.
  const { data: kernels } = useQuery({
    queryKey: ['kernels', session],
    enabled: wanted,
    queryFn: () => data(client.GET('/sessions/{session}/kernels', { params: { path: { session: session ?? '' } } })),
    refetchInterval: (q) => (q.state.data?.items.some((k) => k.busy) ? 2000 : false),
  })
  const { data: known } = useQuery({
    queryKey: ['offer', session, last?.id, file],
    enabled: wanted && !!kernels && !kernels.items.some((k) => k.busy),
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
    refetchOnWindowFocus: false,
    queryFn: async ({ signal }) => {
      const tables = await variablesOf(session ?? '', signal).catch(() => [])
      return tables.length || !file ? tables : await fileOf(session ?? '', file, signal).catch(() => [])
    },
  })
  const asked = branch.map((t) => t.prompt).join('\n\u0000')
  return useMemo(() => (over && known ? { known, asked: asked.split('\n\u0000') } : undefined), [over, known, asked])
}
