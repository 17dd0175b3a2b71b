import { type ReactNode, useMemo } from 'react'
import { client, data } from '../api/client'
import { asProblem } from '../api/problem'
import { useSession } from '../api/queries'
import { InstallContext, type Reader, type Tables, TablesContext, WidgetContext } from '../output'
import { installIn } from './install'
import { useWidgets } from './widgets'

/** Reads tables of a kernel. */
export function readerOf(session: string, kernel: string): Reader {
  return {
    read: (table, { sort, filter, ...query }, signal) =>
      data(
        client.GET('/sessions/{session}/kernels/{kernel}/tables/{table}', {
          params: {
            path: { session, kernel, table },
            query: { ...query, ...(sort ? { sort } : {}), ...(filter ? { filter } : {}) },
          },
          signal,
        }),
      ),
    profile: (table, column, signal) =>
      data(
        client.GET('/sessions/{session}/kernels/{kernel}/tables/{table}/columns/{column}', {
          params: { path: { session, kernel, table, column } },
          signal,
        }),
      ),
  }
}

/** Lets the outputs inside read the rest of their tables from the session in which they were made, move their widgets, and install there what was refused. */
export function SessionTables({ session, children }: { session: string | undefined; children: ReactNode }) {
  const { data: known, error } = useSession(session)
  const reader = useMemo(() => readerOf(session ?? '', 'main'), [session])
  const missing = !session || (error && asProblem(error).status === 404)
  const gone = missing || known?.state === 'deleted' || known?.state === 'lost'
  const state = gone ? 'gone' : known?.state === 'paused' ? 'paused' : known ? 'ready' : null
  const tables = useMemo<Tables | null>(() => (state ? { reader, state } : null), [reader, state])
  const install = useMemo(() => (session && state === 'ready' ? installIn(session) : null), [session, state])
  const widgets = useWidgets(session, state)
  return (
    <InstallContext value={install}>
      <WidgetContext value={widgets}>
        <TablesContext value={tables}>{children}</TablesContext>
      </WidgetContext>
    </InstallContext>
  )
}
