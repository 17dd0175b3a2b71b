import {
  Check,
  ChevronRight,
  CircleAlert,
  CircleDashed,
  CircleStop,
  Copy,
  FastForward,
  FileText,
  History,
  ListChecks,
  Pause,
  Pencil,
  Play,
  Wrench,
} from 'lucide-react'
import { Fragment, lazy, memo, type ReactNode, Suspense, use, useEffect, useMemo, useRef, useState } from 'react'
import { Findings } from '../checks/Findings'
import { useAnswer } from '../events/answer'
import type { ExecutionView } from '../events/execution'
import { figuresOf, type Group, noticesIn } from '../events/group'
import { executionLive, useLive } from '../events/live'
import { nameOf } from '../events/names'
import type { StepView } from '../events/turn'
import { AnswerContext, Code, Outputs, StepContext } from '../output'
import { SessionTables } from '../panels/tables'
import { type Action, Actions, copyText } from '../parts'
import { bytes, plainName, seconds } from '../parts/format'
import { isComposing } from '../parts/keys'
import { preferences, useTheme } from '../shell/preferences'
import { useWords, type Words } from '../words'
import { Approve } from './Approve'
import { Diff } from './Diff'
import { EditStep } from './EditStep'
import { Elapsed } from './Elapsed'
import { isStaleStep } from './marks'
import { isUnfolded, unfold } from './memory'
import { forget, interrupt, notedOf, programsBefore, type Rerun, runSteps, StepsContext, useRerun } from './reruns'
import { Said } from './Said'
import css from './step.module.css'

const CodeCheck = lazy(async () => ({ default: (await import('../checks/CodeCheck')).CodeCheck }))
const PreviewDialog = lazy(async () => ({ default: (await import('../panels/Preview')).PreviewDialog }))

function installName(step: StepView, w: Words): string {
  const p = step.installing
  if (!p) return ''
  const names = (p.packages ?? [])
    .map((x) => (typeof x === 'string' ? x : [x.name, x.version].filter(Boolean).join(' ')))
    .join(', ')
  if (!names) return w.turn.resolving
  const size = p.total_bytes ? ` · ${bytes(p.received_bytes ?? 0)} / ${bytes(p.total_bytes)}` : ''
  return w.turn.installing(names) + size
}

function Installing({ step }: { step: StepView }) {
  const w = useWords()
  if (!step.installing) return null
  const { received_bytes: got, total_bytes: all } = step.installing
  return (
    <div className={css.installing}>
      <span>{installName(step, w)}</span>
      <progress aria-label={installName(step, w)} {...(all ? { value: got ?? 0, max: all } : {})} />
    </div>
  )
}

function Attempt({ step, live }: { step: StepView; live: boolean }) {
  const w = useWords()
  const theme = useTheme()
  const { session } = use(StepsContext)
  const [shown, setShown] = useState('')
  return (
    <>
      <div className={css.code}>
        <Code text={step.code} language="python" live={live && step.state === 'writing'} />
      </div>
      <Installing step={step} />
      {step.items.length > 0 && (
        <div className={css.output}>
          <Outputs
            items={step.items}
            version={step.version}
            live={live}
            theme={theme}
            onOpenFile={session ? setShown : undefined}
          />
        </div>
      )}
      {shown && session && (
        <Suspense fallback={null}>
          <PreviewDialog
            session={session}
            paths={step.files.map((f) => f.path)}
            path={shown}
            onPath={setShown}
            onClose={() => setShown('')}
          />
        </Suspense>
      )}
      {step.edited && <p className={css.note}>{w.approval.editedNote}</p>}
      {step.why && <p className={css.note}>{step.state === 'refused' ? w.approval.ruled(step.why) : step.why}</p>}
      {step.note && (
        <p className={css.note} dir="auto">
          {w.approval.told(step.note)}
        </p>
      )}
      {step.findings && (step.findings.items.length > 0 || step.findings.notes.length > 0) && (
        <section aria-label={w.checks.title}>
          <Findings items={step.findings.items} notes={step.findings.notes} />
        </section>
      )}
      {step.gap && step.done?.outcome !== 'lost' && <p className={css.note}>{w.turn.gap}</p>}
      {!!step.done?.dropped_bytes && <p className={css.note}>{w.turn.dropped(bytes(step.done.dropped_bytes))}</p>}
    </>
  )
}

function stateOf(group: Group, live: boolean, w: Words): { icon: ReactNode; text: string; look: string } {
  const { step, attempts } = group
  if (step.state === 'writing')
    return { icon: <CircleDashed size={15} className={css.turning} aria-hidden />, text: w.turn.writing, look: 'live' }
  if (step.state === 'waiting')
    return { icon: <Pause size={15} aria-hidden />, text: w.approval.waits, look: 'repairing' }
  if (step.state === 'refused')
    return { icon: <CircleStop size={15} aria-hidden />, text: w.approval.refused, look: 'stopped' }
  if (step.state === 'running')
    return {
      icon: <CircleDashed size={15} className={css.turning} aria-hidden />,
      text: step.installing ? installName(step, w) : w.turn.running,
      look: 'live',
    }
  if (step.state === 'failed') {
    const outcome = step.done?.outcome ?? ''
    if (outcome === 'interrupted' || !step.done)
      return { icon: <CircleStop size={15} aria-hidden />, text: w.outcomes.interrupted ?? '', look: 'stopped' }
    const name = outcome === 'error' && step.error ? step.error.name : (w.outcomes[outcome] ?? w.turn.failed)
    return {
      icon: <CircleAlert size={15} aria-hidden />,
      text: live ? `${name} · ${w.turn.repairing}` : name,
      look: live ? 'repairing' : 'failed',
    }
  }
  if (attempts.length) {
    const repaired = attempts.length === 1 ? w.turn.repaired : w.turn.repairedTimes(attempts.length + 1)
    return {
      icon: <Wrench size={15} aria-hidden />,
      text: [attempts.at(-1)?.error?.name, repaired, step.edited && w.approval.edited].filter(Boolean).join(' · '),
      look: 'repaired',
    }
  }
  return { icon: <Check size={15} aria-hidden />, text: step.edited ? w.approval.edited : '', look: 'ok' }
}

/** The state of a step that a person ran again. */
function rerunState(
  rerun: Rerun,
  view: ExecutionView | null,
  w: Words,
): { icon: ReactNode; text: string; look: string } {
  const turning = <CircleDashed size={15} className={css.turning} aria-hidden />
  if (rerun.state === 'waiting') return { icon: turning, text: w.notebook.queued, look: 'live' }
  if (rerun.state === 'running' && view?.asks)
    return { icon: <Pause size={15} aria-hidden />, text: w.turn.asks, look: 'repairing' }
  if (rerun.state === 'running') return { icon: turning, text: w.turn.running, look: 'live' }
  if (rerun.state === 'ok' || view?.done?.outcome === 'ok')
    return { icon: <Check size={15} aria-hidden />, text: w.turn.ranAgain, look: 'ok' }
  const outcome = view?.done?.outcome ?? ''
  const why = outcome === 'error' || !outcome ? view?.error?.name : w.outcomes[outcome]
  return { icon: <CircleAlert size={15} aria-hidden />, text: why ?? w.turn.failed, look: 'failed' }
}

interface Props {
  group: Group
  /** Changes with the step. */
  version: number
  id: string
  /** The turn is not over. */
  live: boolean
  /** It is the last one so far. */
  last: boolean
}

/** One step: a line that unfolds. While it is written and runs it is open, and its figures stay. */
export const Step = memo(
  function Step({ group, id, live, last }: Props) {
    const w = useWords()
    const theme = useTheme()
    const { step, attempts, said } = group
    const place = use(StepsContext)
    const ran = useRerun(place.turns, id)
    const rerun = typeof ran === 'string' ? null : ran
    const stale = isStaleStep(place.turns, id.slice(0, id.lastIndexOf('/')), step.number)
    const again = useMemo(
      () => (rerun?.execution ? executionLive(rerun.execution, true, rerun.code) : null),
      [rerun?.execution, rerun?.code],
    )
    useLive(again)
    const answer = useAnswer(rerun?.execution)
    const busy = step.state === 'writing' || step.state === 'running'
    const [chosen, setChosen] = useState<boolean | null>(() => (isUnfolded(id) ? true : null))
    const [editing, setEditing] = useState(false)
    const [checked, setChecked] = useState<string | null>(null)
    const asked = live && step.state === 'waiting'
    const asks = rerun?.state === 'running' && !!again?.view.asks
    useEffect(() => {
      if (asks) setChosen((c) => c ?? true) // and it stays open with what comes of the answer
    }, [asks])
    const open = asked || (chosen ?? (asks || (live && last && (busy || step.state === 'ok'))))
    const shown = again ? again.view : step
    const figures = open ? [] : figuresOf(shown.items)
    const state = rerun ? rerunState(rerun, again?.view ?? null, w) : stateOf(group, live, w)
    const code = rerun?.code ?? step.code
    const notices = noticesIn(group)
    const name = nameOf(code, w.turn.names) || w.turn.step(step.number)
    const may = !live && !place.busy && !!place.session
    const running = rerun?.state === 'running' || rerun?.state === 'waiting'
    const line = useRef<HTMLButtonElement>(null)
    const box = useRef<HTMLElement>(null)
    const fold = (to: boolean) => {
      setChosen(to)
      unfold(id, to)
    }
    const edit = () => {
      fold(true)
      setEditing(true)
    }
    const check = () => {
      fold(true)
      setChecked(code)
    }
    const run = (text: string, all: boolean) => {
      setEditing(false)
      fold(true)
      line.current?.focus({ preventScroll: true })
      void runSteps(place, { id, code: text }, all, w)
    }
    const actions: Action[] = [
      ...(may && !running
        ? [
            { id: 'run', label: w.turn.runAgain, icon: <Play size={14} aria-hidden />, act: () => run(code, false) },
            {
              id: 'from',
              label: w.notebook.runFrom,
              icon: <FastForward size={14} aria-hidden />,
              act: () => run(code, true),
            },
            { id: 'edit', label: w.turn.editCode, icon: <Pencil size={14} aria-hidden />, act: edit },
          ]
        : []),
      ...(running
        ? [{ id: 'stop', label: w.notebook.interrupt, act: () => void interrupt(rerun?.execution ?? '') }]
        : []),
      ...(!running && notedOf(place.turns, id)
        ? [{ id: 'was', label: w.turn.asItWas, act: () => void forget(id) }]
        : []),
      ...(live ? [] : [{ id: 'check', label: w.checks.check, icon: <ListChecks size={14} aria-hidden />, act: check }]),
      {
        id: 'copy',
        label: w.turn.copyCode,
        icon: <Copy size={14} aria-hidden />,
        act: () => void copyText(code, w.copied),
      },
    ]
    const onKey = (e: React.KeyboardEvent) => {
      if (isComposing(e) || e.ctrlKey || e.metaKey || e.altKey || e.shiftKey || !preferences().letters) return
      const acts: Record<string, () => void> = {
        j: () => beside(line.current, 1),
        k: () => beside(line.current, -1),
        o: () => fold(!open),
        e: () => may && !running && edit(),
        r: () => may && !running && run(code, false),
        '.': () => box.current?.querySelector<HTMLElement>('[aria-haspopup=menu]')?.click(),
      }
      const act = acts[e.key]
      if (!act) return
      e.preventDefault()
      e.stopPropagation()
      act()
    }
    return (
      <StepContext value={step.number}>
        <section
          ref={box}
          className={css.step}
          data-look={stale && !running ? 'stale' : state.look}
          data-open={open || undefined}
          aria-label={name}
        >
          <div className={css.top}>
            <button
              ref={line}
              type="button"
              className={css.line}
              aria-expanded={open}
              aria-keyshortcuts={
                preferences().letters ? `j k o ${may && !running ? 'e r ' : ''}${live ? '' : '.'}`.trim() : undefined
              }
              data-step
              onKeyDown={onKey}
              onClick={() => fold(!open)}
            >
              <ChevronRight size={15} className={css.arrow} aria-hidden />
              <bdi className={css.name}>{name}</bdi>
              {!open && notices > 0 && <span className={css.notices}>{w.turn.notices(notices)}</span>}
              <span className={css.state}>
                {stale && !running ? w.turn.stale : state.text}
                {stale && !running ? <History size={15} aria-hidden /> : state.icon}
              </span>
              <span className={css.time}>
                {shown.done ? (
                  shown.done.outcome !== 'lost' && seconds(shown.done.seconds ?? 0)
                ) : busy && live ? (
                  <Elapsed from={3} />
                ) : (
                  ''
                )}
              </span>
            </button>
            {!live && <Actions small label={w.turn.stepActions} actions={actions} className={css.actions ?? ''} />}
          </div>
          {open && (
            <div className={css.body}>
              {ran === 'gone' && <p className={css.note}>{w.turn.ranGone}</p>}
              {ran === 'refused' && <p className={css.note}>{w.turn.ranRefused}</p>}
              {attempts.map((a, i) => (
                <Fragment key={a.number}>
                  <details className={css.attempt}>
                    <summary>
                      {w.turn.attempt(i + 1)} · {a.error?.name ?? w.turn.failed}
                    </summary>
                    <Attempt step={a} live={false} />
                    <h4 className={css.changes}>{w.turn.diff}</h4>
                    <Diff before={a.code} after={attempts[i + 1]?.code ?? step.code} />
                  </details>
                  {said[i]?.map((part, n) => (
                    // biome-ignore lint/suspicious/noArrayIndexKey: what was said does not change any more
                    <Said key={n} part={part} live={false} />
                  ))}
                </Fragment>
              ))}
              {editing ? (
                <EditStep code={code} onRun={run} onLeave={() => setEditing(false)} back={line} />
              ) : asked ? (
                <Approve turn={id.slice(0, id.lastIndexOf('/'))} step={step.number} code={step.code} why={step.why} />
              ) : again && rerun ? (
                <SessionTables key={rerun.execution} session={rerun.session}>
                  <AnswerContext value={answer}>
                    <Attempt step={{ ...again.view, code: rerun.code }} live={rerun.state === 'running'} />
                  </AnswerContext>
                </SessionTables>
              ) : (
                <Attempt step={step} live={live && busy} />
              )}
              {checked !== null && checked === code && (
                <Suspense fallback={null}>
                  <CodeCheck
                    id={`${id} ${code}`}
                    what={async () => ({ code, before: await programsBefore(place, id) })}
                    onClose={() => {
                      setChecked(null)
                      line.current?.focus({ preventScroll: true })
                    }}
                  />
                </Suspense>
              )}
            </div>
          )}
          {!open && figures.length > 0 && (
            <div className={css.figures}>
              <Outputs items={figures} live={false} theme={theme} />
            </div>
          )}
        </section>
      </StepContext>
    )
  },
  (a, b) =>
    a.version === b.version &&
    a.live === b.live &&
    a.last === b.last &&
    a.group.step === b.group.step &&
    a.group.attempts.length === b.group.attempts.length,
)

/** To the step before or after, over all turns that are shown. */
function beside(from: HTMLElement | null, by: number) {
  const all = [...document.querySelectorAll<HTMLElement>('[data-step]')]
  const next = from ? all[all.indexOf(from) + by] : null
  next?.focus()
  next?.scrollIntoView({ block: 'nearest' })
}

/** The files that a turn made or changed. */
export function Made({
  files,
  session,
  turn,
}: {
  files: (StepView['files'][number] & { step: number })[]
  session: string
  turn: string
}) {
  const w = useWords()
  const { turns } = use(StepsContext)
  const [shown, setShown] = useState('')
  if (!files.length) return null
  return (
    <ul className={css.files}>
      {files.map((f) => (
        <li key={f.path}>
          <button type="button" onClick={() => setShown(f.path)}>
            <FileText size={14} aria-hidden />
            <bdi>{plainName(f.path)}</bdi>
            <span>
              {bytes(f.size)} · {f.created ? w.turn.created : w.turn.changed}
            </span>
            {isStaleStep(turns, turn, f.step) && <span data-stale>{w.turn.staleFiles}</span>}
          </button>
        </li>
      ))}
      {shown && (
        <Suspense fallback={null}>
          <PreviewDialog
            session={session}
            paths={files.map((f) => f.path)}
            path={shown}
            onPath={setShown}
            onClose={() => setShown('')}
          />
        </Suspense>
      )}
    </ul>
  )
}
