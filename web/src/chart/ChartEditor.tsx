import { useQuery } from '@tanstack/react-query'
import { useId, useState } from 'react'
import { asProblem } from '../api/problem'
import { Button, ProblemBox } from '../parts'
import { isComposing } from '../parts/keys'
import { useWords } from '../words'
import { ChartForm } from './ChartForm'
import css from './chart.module.css'
import { ChartSessionContext } from './run'
import type { Settings } from './settings'
import { sourceAgain } from './source'

interface Props {
  session: string
  settings: Settings
  changed: boolean
  busy: boolean
  working: boolean
  onDraw: (settings: Settings) => void
  onCode: () => void
  onLeave: () => void
}

/** The settings of a chart that is there, below it. Escape leaves it as it is. */
export function ChartEditor({ session, settings, changed, busy, working, onDraw, onCode, onLeave }: Props) {
  const w = useWords()
  const c = w.charting
  const own = useId()
  const [agreed, setAgreed] = useState(!changed)
  const source = useQuery({
    queryKey: ['chart', session, own],
    queryFn: () => sourceAgain(session, settings.from),
    gcTime: 0,
    staleTime: 60_000,
    retry: false,
    refetchOnWindowFocus: false,
    refetchInterval: (q) => (q.state.error && asProblem(q.state.error).code === 'session_busy' ? 2000 : false),
  })
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: Escape leaves, as Cancel does
    <div
      className={css.editor}
      onKeyDown={(e) => {
        if (e.key !== 'Escape' || isComposing(e)) return
        e.stopPropagation()
        onLeave()
      }}
    >
      {!agreed ? (
        <>
          <p className={css.note} role="status">
            {c.changed}
          </p>
          <div className={css.buttons}>
            <Button look="plain" onClick={onLeave}>
              {w.cancel}
            </Button>
            <Button onClick={() => setAgreed(true)}>{c.startOver}</Button>
            <Button look="primary" onClick={onCode} autoFocus>
              {c.editCode}
            </Button>
          </div>
        </>
      ) : source.error && asProblem(source.error).code !== 'session_busy' ? (
        <>
          <p className={css.note}>{c.notHere}</p>
          <ProblemBox error={source.error} onRetry={() => void source.refetch()} />
        </>
      ) : source.data === undefined ? (
        <p className={css.note} role="status">
          {c.looking}
        </p>
      ) : source.data === null ? (
        <p className={css.note} role="status">
          {c.notHere}
        </p>
      ) : (
        <ChartSessionContext value={session}>
          <ChartForm
            source={source.data}
            start={settings}
            go={c.redraw}
            busy={busy}
            working={working}
            onDraw={onDraw}
            onCancel={onLeave}
          />
        </ChartSessionContext>
      )}
    </div>
  )
}
