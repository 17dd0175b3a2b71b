import { useQuery } from '@tanstack/react-query'
import { X } from 'lucide-react'
import { useId, useState } from 'react'
import { Dialog, Modal, ModalOverlay } from 'react-aria-components'
import { asProblem } from '../api/problem'
import { complain, IconButton, ProblemBox } from '../parts'
import { plainName } from '../parts/format'
import { useWords } from '../words'
import { ChartForm } from './ChartForm'
import css from './chart.module.css'
import { generate } from './generate'
import { guess } from './guess'
import { ChartSessionContext, type Opening, runChart } from './run'
import { marked, newId, type Settings } from './settings'
import { choicesOf, type Source } from './source'

interface Props {
  session: string
  after: string | undefined
  busy: boolean
  asked: Opening
  onClose: () => void
}

function begin(source: Source, after: string | undefined): Settings {
  const first = guess(choicesOf(source))
  return {
    id: newId(),
    ...(after ? { after } : {}),
    from: source.from,
    ...first,
    color: null,
    title: '',
    palette: 'page',
    colors: {},
  }
}

/** A chart of a table, by its columns. Escape leaves without one. */
export function ChartDialog({ session, after, busy, asked, onClose }: Props) {
  const w = useWords()
  const c = w.charting
  const own = useId()
  const { name, find, start, run, onDrawn } = asked
  const [working, setWorking] = useState(false)
  const source = useQuery({
    queryKey: ['chart', own],
    queryFn: find,
    gcTime: 0,
    staleTime: 60_000,
    retry: false,
    refetchOnWindowFocus: false,
    refetchInterval: (q) => (q.state.error && asProblem(q.state.error).code === 'session_busy' ? 2000 : false),
  })
  const title = name ? c.title(plainName(name)) : c.panel
  const draw = async (settings: Settings) => {
    setWorking(true)
    try {
      const code = marked(settings, generate(settings, c.said))
      if (run) run(code)
      else await runChart(session, code)
      onClose()
      onDrawn?.()
    } catch (error) {
      complain(error)
      setWorking(false)
    }
  }
  return (
    <ModalOverlay className={css.overlay ?? ''} isOpen isDismissable onOpenChange={(open) => !open && onClose()}>
      <Modal className={css.modal ?? ''}>
        <Dialog className={css.dialog ?? ''} aria-label={title}>
          <div className={css.head}>
            <h2>
              <bdi>{title}</bdi>
            </h2>
            <IconButton label={w.close} onClick={onClose}>
              <X size={16} aria-hidden />
            </IconButton>
          </div>
          {source.error && asProblem(source.error).code !== 'session_busy' ? (
            <ProblemBox error={source.error} onRetry={() => void source.refetch()} />
          ) : source.data === undefined ? (
            <p className={css.note} role="status">
              {c.looking}
            </p>
          ) : source.data === null ? (
            <p className={css.note} role="status">
              {c.unnamed}
            </p>
          ) : (
            <ChartSessionContext value={session}>
              {start?.changed && <p className={css.note}>{c.changed}</p>}
              <ChartForm
                source={source.data}
                start={start?.settings ?? begin(source.data, after)}
                go={start ? c.redraw : c.draw}
                busy={busy}
                working={working}
                onDraw={(s) => void draw(s)}
                onCancel={onClose}
              />
            </ChartSessionContext>
          )}
        </Dialog>
      </Modal>
    </ModalOverlay>
  )
}
