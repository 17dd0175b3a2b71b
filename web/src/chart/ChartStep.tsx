import { ChartNoAxesCombined, ChevronLeft, ChevronRight, CircleDashed, Code2, Copy, Pencil, Trash2 } from 'lucide-react'
import { memo, use, useEffect, useMemo, useRef, useState } from 'react'
import { EditStep } from '../conversation/EditStep'
import { executionLive, useLive } from '../events/live'
import { Code, Outputs } from '../output'
import { type Action, Actions, Button, complain, copyText, IconButton } from '../parts'
import { plainName, seconds } from '../parts/format'
import { useTheme } from '../shell/preferences'
import { useWords } from '../words'
import { ChartEditor } from './ChartEditor'
import css from './chart.module.css'
import { generate } from './generate'
import { drawn, isRemoved, type OwnChart, type Version } from './own'
import { ChartingContext, isFresh, runChart } from './run'
import { keepMark, marked, type Settings } from './settings'

interface Props {
  chart: OwnChart
  /** Where another version of it runs. */
  session: string | undefined
  busy: boolean
  /** The state that it was drawn from was taken back. */
  undone: boolean
}

function Drawn({ version }: { version: Version }) {
  const w = useWords()
  const theme = useTheme()
  const { execution } = version
  const going = execution.state === 'running' || execution.state === 'queued'
  const live = useMemo(() => executionLive(execution.id, going, execution.code), [execution.id, going, execution.code])
  useLive(live)
  const { view } = live
  const over = !!view.done || view.state === 'failed'
  const [code, setCode] = useState(false)
  return (
    <>
      {code && (
        <div className={css.source}>
          <Code text={version.body} language="python" />
        </div>
      )}
      <Outputs items={view.items} version={view.version} live={!over} theme={theme} />
      <p className={css.note} role="status">
        {over ? (
          view.done && view.done.outcome !== 'lost' ? (
            seconds(view.done.seconds ?? 0)
          ) : (
            ''
          )
        ) : (
          <>
            <CircleDashed size={14} className={css.turning} aria-hidden /> {w.charting.drawing}
          </>
        )}
      </p>
      <button type="button" className={css.fold} aria-expanded={code} onClick={() => setCode(!code)}>
        <Code2 size={14} aria-hidden />
        {w.charting.code}
      </button>
    </>
  )
}

/** A chart that a person made: its figure, its code, and its settings to be changed in place. Each change is another version. */
export const ChartStep = memo(function ChartStep({ chart, session, busy, undone }: Props) {
  const w = useWords()
  const c = w.charting
  const able = use(ChartingContext) !== null && !!session
  const versions = drawn(chart)
  const [chosen, setChosen] = useState<number | null>(null)
  const [editing, setEditing] = useState<'' | 'settings' | 'code'>('')
  const [working, setWorking] = useState(false)
  const box = useRef<HTMLElement>(null)
  const edit = useRef<HTMLButtonElement>(null)
  const at = Math.min(chosen ?? versions.length - 1, versions.length - 1)
  const version = versions[at]
  const newest = chart.versions.at(-1)?.execution.id ?? ''
  useEffect(() => {
    if (!isFresh(newest)) return
    setChosen(null)
    box.current?.scrollIntoView({ block: 'nearest' })
    ;(edit.current ?? box.current)?.focus({ preventScroll: true })
  }, [newest])
  const run = async (code: string) => {
    if (!session || busy) return
    setWorking(true)
    try {
      await runChart(session, code)
      setChosen(null)
      setEditing('')
    } catch (error) {
      complain(error)
    }
    setWorking(false)
  }
  if (!version) return null
  const { settings, changed } = version
  const draw = (s: Settings) => void run(marked(s, generate(s, c.said)))
  const title = plainName(settings.title)
  const leave = () => {
    setEditing('')
    edit.current?.focus()
  }
  if (isRemoved(chart))
    return (
      <section ref={box} tabIndex={-1} className={css.removed} aria-label={c.yours} data-own-chart>
        <span>{c.removed}</span>
        {able && (
          <Button ref={edit} look="plain" disabled={busy || working} onClick={() => void run(version.execution.code)}>
            {c.back}
          </Button>
        )}
      </section>
    )
  const actions: Action[] = [
    ...(able && !busy && !working
      ? [{ id: 'code', label: w.turn.editCode, icon: <Code2 size={14} aria-hidden />, act: () => setEditing('code') }]
      : []),
    {
      id: 'copy',
      label: w.turn.copyCode,
      icon: <Copy size={14} aria-hidden />,
      act: () => void copyText(version.execution.code, w.copied),
    },
    ...(able && !busy && !working
      ? [
          {
            id: 'remove',
            label: c.remove,
            icon: <Trash2 size={14} aria-hidden />,
            act: () => draw({ ...settings, removed: true }),
          },
        ]
      : []),
  ]
  return (
    <section
      ref={box}
      tabIndex={-1}
      className={css.step}
      aria-label={c.step(title)}
      data-own-chart
      data-undone={undone || undefined}
    >
      <div className={css.top}>
        <ChartNoAxesCombined size={15} aria-hidden />
        <bdi className={css.name}>{c.step(title)}</bdi>
        {versions.length > 1 && (
          <span className={css.versions}>
            <IconButton small label={c.older} disabled={at <= 0} onClick={() => setChosen(at - 1)}>
              <ChevronLeft size={15} aria-hidden />
            </IconButton>
            <span role="img" aria-label={c.version(at + 1, versions.length)}>
              {at + 1}/{versions.length}
            </span>
            <IconButton small label={c.newer} disabled={at >= versions.length - 1} onClick={() => setChosen(at + 1)}>
              <ChevronRight size={15} aria-hidden />
            </IconButton>
          </span>
        )}
        {able && (
          <button
            ref={edit}
            type="button"
            className={css.edit}
            aria-expanded={editing === 'settings'}
            onClick={() => setEditing(editing === 'settings' ? '' : 'settings')}
          >
            <Pencil size={14} aria-hidden />
            {c.edit}
          </button>
        )}
        <Actions small label={w.turn.stepActions} actions={actions} />
      </div>
      {editing === 'code' ? (
        <EditStep
          code={version.execution.code}
          onRun={(code) => void run(keepMark(version.execution.code, code))}
          onLeave={() => setEditing('')}
          back={edit}
        />
      ) : (
        <Drawn key={`drawn ${version.execution.id}`} version={version} />
      )}
      {editing === 'settings' && session && (
        <ChartEditor
          key={`settings ${version.execution.id}`}
          session={session}
          settings={settings}
          changed={changed}
          busy={busy}
          working={working}
          onDraw={draw}
          onCode={() => setEditing('code')}
          onLeave={leave}
        />
      )}
    </section>
  )
})
