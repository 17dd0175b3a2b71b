import { lazy, type ReactNode, Suspense, useCallback, useMemo, useState } from 'react'
import { useMe } from '../api/queries'
import { ChartOfContext, type Sheet } from '../output'
import { may } from '../pages/admin/rights'
import { ChartingContext, type Charting as Charts, type Opening } from './run'
import { sourceOfShown } from './source'

const ChartDialog = lazy(async () => ({ default: (await import('./ChartDialog')).ChartDialog }))

interface Props {
  session: string | undefined
  /** The turn that a chart stands after. */
  after?: string | undefined
  /** The model has Python. */
  busy?: boolean
  children: ReactNode
}

/** Lets the tables inside be made into charts, by who may run code. */
export function Charting({ session, after, busy = false, children }: Props) {
  const me = useMe().data
  const [asked, setAsked] = useState<Opening | null>(null)
  const able = !!session && !!me && may(me, 'sessions:execute') && may(me, 'sessions:read')
  const charts = useMemo<Charts | null>(() => (able ? { open: setAsked } : null), [able])
  const shown = useCallback(
    (sheet: Sheet, count: number) => {
      const name = sheet.name.replace(/^~\d+$/, '')
      setAsked({ name, find: () => sourceOfShown(session ?? '', sheet, count) })
    },
    [session],
  )
  return (
    <ChartingContext value={charts}>
      <ChartOfContext value={able ? shown : null}>
        {children}
        {asked && session && (
          <Suspense fallback={null}>
            <ChartDialog session={session} after={after} busy={busy} asked={asked} onClose={() => setAsked(null)} />
          </Suspense>
        )}
      </ChartOfContext>
    </ChartingContext>
  )
}
