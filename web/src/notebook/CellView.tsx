import { Play, Square } from 'lucide-react'
import { memo, use, useEffect, useMemo, useRef, useState } from 'react'
import { ChartingContext, isFresh } from '../chart/run'
import { readMarked } from '../chart/settings'
import { sourceAgain } from '../chart/source'
import { useAnswer } from '../events/answer'
import { executionLive, useLive } from '../events/live'
import { AnswerContext, Markdown, Outputs } from '../output'
import { SessionTables } from '../panels/tables'
import { Actions, IconButton } from '../parts'
import { seconds } from '../parts/format'
import { isComposing, modKey } from '../parts/keys'
import { preferences, useTheme } from '../shell/preferences'
import { useWords } from '../words'
import type { Cell } from './cells'
import { Editor } from './Editor'
import { kernelOf } from './kernel'
import { command, declared } from './keys'
import css from './notebook.module.css'
import type { Act } from './useCells'

interface ResultProps {
  id: string
  code: string
  session: string
  onOver: (outcome: string) => void
}

function Result({ id, code, session, onOver }: ResultProps) {
  const w = useWords()
  const theme = useTheme()
  const live = useMemo(() => executionLive(id, true, code), [id, code])
  useLive(live)
  const answer = useAnswer(id)
  const { view } = live
  const over = view.done?.outcome ?? (view.state === 'failed' ? 'failed' : '')
  const told = useRef(false)
  useEffect(() => {
    if (over && !told.current) {
      told.current = true
      onOver(over)
    }
  })
  return (
    <div className={css.result}>
      {view.items.length > 0 && (
        <SessionTables session={session}>
          <AnswerContext value={answer}>
            <Outputs items={view.items} version={view.version} live={!over} theme={theme} />
          </AnswerContext>
        </SessionTables>
      )}
      {over === 'failed' && view.error && <p className={css.note}>{view.error.value}</p>}
      <p className={css.note} aria-live="polite">
        {view.done
          ? view.done.outcome === 'lost'
            ? ''
            : seconds(view.done.seconds ?? 0)
          : over
            ? ''
            : view.asks
              ? w.turn.asks
              : w.turn.running}
      </p>
    </div>
  )
}

interface CellProps {
  cell: Cell
  session: string
  number: number
  old: boolean
  busy: boolean
  waiting: boolean
  chosen: boolean
  editing: boolean
  act: Act
}

const together = 700 // milliseconds in which a letter pressed twice is one command

export const CellView = memo(function CellView(props: CellProps) {
  const { cell, session, number, old, busy, waiting, chosen, editing, act } = props
  const w = useWords()
  const n = w.notebook
  const box = useRef<HTMLElement>(null)
  const before = useRef({ key: '', at: 0 })
  const changed = !!cell.execution && cell.code !== cell.ran
  const shown = cell.kind === 'markdown' && !editing && !!cell.code.trim()
  useEffect(() => {
    const el = box.current
    if (!chosen || editing || !el || el === document.activeElement) return
    el.focus({ preventScroll: true })
    el.scrollIntoView({ block: 'nearest' })
  }, [chosen, editing])
  useEffect(() => {
    if (isFresh(cell.execution)) box.current?.scrollIntoView({ block: 'nearest' })
  }, [cell.execution])
  const onKey = (e: React.KeyboardEvent) => {
    if (isComposing(e) || e.target !== e.currentTarget) return
    const last = e.timeStamp - before.current.at < together ? before.current.key : ''
    const what = command(e, last, preferences().letters)
    before.current = what ? { key: '', at: 0 } : { key: e.key, at: e.timeStamp }
    if (!what) return
    e.preventDefault()
    e.stopPropagation()
    act(what, cell.key)
  }
  const charts = use(ChartingContext)
  // An editor has the code that it began with.
  const [drawn, setDrawn] = useState(0)
  const chart = useMemo(() => (cell.kind ? null : readMarked(cell.code)), [cell.kind, cell.code])
  const editChart = () => {
    if (!chart || !session) return
    charts?.open({
      name: '',
      find: () => sourceAgain(session, chart.settings.from),
      start: chart,
      run: (code) => {
        act('draw', cell.key, code)
        setDrawn((n) => n + 1)
      },
    })
  }
  const actions = [
    ...(chart && charts && !busy ? [{ id: 'chart', label: w.charting.edit, act: editChart }] : []),
    ...(cell.kind
      ? [{ id: 'python', label: n.toPython, act: () => act('python', cell.key) }]
      : [
          { id: 'from', label: n.runFrom, act: () => act('from', cell.key) },
          { id: 'markdown', label: n.toMarkdown, act: () => act('markdown', cell.key) },
        ]),
    { id: 'above', label: n.above, act: () => act('above', cell.key) },
    { id: 'below', label: n.below, act: () => act('below', cell.key) },
    { id: 'up', label: n.moveUp, act: () => act('moveUp', cell.key) },
    { id: 'down', label: n.moveDown, act: () => act('moveDown', cell.key) },
    ...(busy ? [] : [{ id: 'remove', label: n.removeCell, bad: true, act: () => act('remove', cell.key) }]),
  ]
  return (
    <section
      ref={box}
      className={css.cell}
      aria-label={n.cell(number)}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: it has keys of its own
      tabIndex={0}
      aria-keyshortcuts={declared(preferences().letters, modKey)}
      data-cell={cell.key}
      data-chosen={chosen || undefined}
      data-busy={busy || undefined}
      onKeyDown={onKey}
      onFocus={(e) => e.target === e.currentTarget && !chosen && act('choose', cell.key)}
    >
      {shown ? (
        // biome-ignore lint/a11y/noStaticElementInteractions: Enter does the same
        <div className={css.text} onDoubleClick={() => act('edit', cell.key)}>
          <Markdown text={cell.code} />
          <Actions small label={n.actions(number)} actions={actions} className={css.over ?? ''} />
        </div>
      ) : (
        <div className={css.editor}>
          <Editor
            key={`${cell.kind ?? 'python'} ${drawn}`}
            plain={!!cell.kind}
            code={cell.code}
            label={cell.kind ? n.text(number) : n.code(number)}
            kernel={cell.kind || !session ? undefined : kernelOf(session)}
            hint={cell.kind ? 'Markdown' : n.placeholder}
            focused={editing}
            onChange={(code) => act('change', cell.key, code)}
            onRun={(how) => act(how, cell.key)}
            onFocus={() => act('focus', cell.key)}
            onLeave={() => act('choose', cell.key)}
          />
          <div className={css.tools}>
            {busy ? (
              <IconButton small label={n.interrupt} onClick={() => act('stop', cell.key)}>
                <Square size={13} fill="currentColor" aria-hidden />
              </IconButton>
            ) : (
              <IconButton
                small
                label={cell.kind ? n.showText : n.run}
                onClick={() => act('run', cell.key)}
                disabled={!cell.code.trim()}
              >
                <Play size={15} aria-hidden />
              </IconButton>
            )}
            <Actions small label={n.actions(number)} actions={actions} />
          </div>
        </div>
      )}
      {waiting && <p className={css.note}>{n.queued}</p>}
      {(changed || old) && !waiting && !busy && (
        <p className={css.stale}>{changed ? n.unrun : cell.at ? n.stale : n.unrun}</p>
      )}
      {cell.execution && (
        <Result
          key={cell.execution}
          id={cell.execution}
          code={cell.ran}
          session={cell.session ?? session}
          onOver={(outcome) => act('over', cell.key, outcome)}
        />
      )}
    </section>
  )
})
