import { useQuery } from '@tanstack/react-query'
import { X } from 'lucide-react'
import { lazy, Suspense, use, useCallback, useMemo } from 'react'
import { Dialog, Modal, ModalOverlay } from 'react-aria-components'
import { asProblem, Problem } from '../api/problem'
import { ChartingContext } from '../chart/run'
import { kernel as charted, sourceOfVariable } from '../chart/source'
import { ChartOfContext, type Sheet, sheetOf, type Tables, TablesContext } from '../output'
import { IconButton, ProblemBox } from '../parts'
import { plainName } from '../parts/format'
import { useWords } from '../words'
import css from './panels.module.css'
import { readerOf } from './tables'

const SheetGrid = lazy(async () => ({ default: (await import('../output/Grid')).SheetGrid }))
const first = 50

interface Props {
  session: string
  kernel: string
  name: string
}

/** A variable that is a table, over the page. It is not the browser's own dialog: over that, menus could not be shown. */
export function TableDialog({ onClose, ...of }: Props & { onClose: () => void }) {
  const w = useWords()
  return (
    <ModalOverlay className={css.overlay ?? ''} isOpen isDismissable onOpenChange={(open) => !open && onClose()}>
      <Modal className={css.wide ?? ''}>
        <Dialog className={css.inside ?? ''} aria-label={plainName(of.name)}>
          <div className={css.title}>
            <h2>
              <bdi>{plainName(of.name)}</bdi>
            </h2>
            <IconButton label={w.close} onClick={onClose}>
              <X size={16} aria-hidden />
            </IconButton>
          </div>
          <TableOf {...of} onClose={onClose} />
        </Dialog>
      </Modal>
    </ModalOverlay>
  )
}

function TableOf({ session, kernel, name, onClose }: Props & { onClose: () => void }) {
  const w = useWords()
  const charts = use(ChartingContext)
  const chart = useCallback(
    () => charts?.open({ name, find: () => sourceOfVariable(session, name), onDrawn: onClose }),
    [charts, session, name, onClose],
  )
  const tables = useMemo<Tables>(() => ({ reader: readerOf(session, kernel), state: 'ready' }), [session, kernel])
  const head = useQuery<Sheet>({
    queryKey: ['table', session, kernel, name],
    staleTime: 0,
    gcTime: 0,
    refetchOnWindowFocus: false,
    retry: false,
    refetchInterval: (q) => (q.state.error && asProblem(q.state.error).code === 'session_busy' ? 2000 : false),
    queryFn: async ({ signal }) => {
      const query = { offset: 0, limit: first, sort: '', descending: false, filter: '' }
      const sheet = sheetOf({ ...((await tables.reader.read(name, query, signal)) as object), name })
      if (!sheet) throw new Problem(0, { code: 'no_table', detail: w.variables.noTable })
      return sheet
    },
  })
  const again = () => void head.refetch()
  if (head.data)
    return (
      <TablesContext value={tables}>
        <ChartOfContext value={charts && kernel === charted ? chart : null}>
          <Suspense fallback={<p className={css.quiet}>{w.loading}</p>}>
            <SheetGrid key={head.dataUpdatedAt} sheet={head.data} onAgain={again} />
          </Suspense>
        </ChartOfContext>
      </TablesContext>
    )
  if (head.error && asProblem(head.error).code === 'session_busy')
    return (
      <p className={css.quiet} role="status">
        {w.variables.busy}
      </p>
    )
  if (head.error) return <ProblemBox error={head.error} onRetry={again} />
  return <p className={css.quiet}>{w.loading}</p>
}
