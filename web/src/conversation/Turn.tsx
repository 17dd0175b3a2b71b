import { ChevronLeft, ChevronRight, Copy, CornerUpLeft, FileText, GitFork, Pencil, RotateCcw } from 'lucide-react'
import { memo, useEffect, useMemo, useRef, useState } from 'react'
import { fileAddress } from '../api/base'
import type { Turn } from '../api/client'
import { blocksOf } from '../events/group'
import { turnLive, useLive } from '../events/live'
import { steps as stepsOf } from '../events/turn'
import { Markdown } from '../output'
import { SessionTables } from '../panels/tables'
import { Button, copyText, IconButton, ProblemBox } from '../parts'
import { bytes, count, money, plainName, seconds } from '../parts/format'
import { isComposing } from '../parts/keys'
import { isSend } from '../shell/preferences'
import { useWords, type Words } from '../words'
import { Ending } from './Ending'
import { Quote } from './Quote'
import { splitQuote } from './quote'
import { Rate } from './Rate'
import { LastFailed } from './Said'
import { StaleAnswer } from './StaleAnswer'
import { Status } from './Status'
import { Made } from './Step'
import css from './turn.module.css'
import { Work } from './Work'

export interface TurnActions {
  again: (turn: Turn, text: string) => void
  back: (turn: Turn) => void
  /** Answers once more, with the steps as they are now. */
  anew: (turn: Turn) => Promise<void>
  fork: (turn: Turn) => void
  show: (turn: string) => void
}

function Asked({
  turn,
  versions,
  actions,
  locked,
  editing,
  onEdit,
}: {
  turn: Turn
  versions: string[]
  actions: TurnActions
  locked: boolean
  editing: boolean
  onEdit: (on: boolean) => void
}) {
  const w = useWords()
  const area = useRef<HTMLTextAreaElement>(null)
  const files = turn.files ?? []
  const { question, quote } = splitQuote(turn.prompt)
  const at = versions.indexOf(turn.id)
  const before = versions[at - 1]
  const after = versions[at + 1]
  const go = () => {
    const text = area.current?.value.trim()
    if (!text) return
    onEdit(false)
    actions.again(turn, text + quote)
  }
  if (editing)
    return (
      <form
        className={css.edit}
        onSubmit={(e) => {
          e.preventDefault()
          go()
        }}
      >
        <textarea
          ref={area}
          aria-label={w.turn.edit}
          defaultValue={question}
          rows={2}
          // biome-ignore lint/a11y/noAutofocus: the person asked to edit it
          autoFocus
          onKeyDown={(e) => {
            if (isComposing(e)) return
            if (e.key === 'Escape') onEdit(false)
            if (!isSend(e)) return
            e.preventDefault()
            go()
          }}
        />
        <p>{w.turn.editNote}</p>
        <div>
          <Button look="plain" onClick={() => onEdit(false)}>
            {w.cancel}
          </Button>
          <Button look="primary" type="submit">
            {w.turn.editGo}
          </Button>
        </div>
      </form>
    )
  return (
    <div className={css.asked}>
      <div className={css.question}>
        <h2 className={css.hidden}>{w.turn.you}</h2>
        <p dir="auto">{question}</p>
        <Quote text={quote} />
        {files.length > 0 && (
          <ul className={css.sent}>
            {files.map((f) => (
              <li key={f.name}>
                <FileText size={14} aria-hidden />
                <bdi>{plainName(f.name)}</bdi>
                <span>{bytes(f.size)}</span>
              </li>
            ))}
          </ul>
        )}
      </div>
      <div className={css.tools}>
        <IconButton small label={w.turn.edit} onClick={() => onEdit(true)} disabled={locked}>
          <Pencil size={14} aria-hidden />
        </IconButton>
        {versions.length > 1 && (
          <span className={css.versions}>
            <IconButton small label={w.turn.previous} disabled={!before} onClick={() => before && actions.show(before)}>
              <ChevronLeft size={15} aria-hidden />
            </IconButton>
            <span role="img" aria-label={w.turn.branch(at + 1, versions.length)}>
              {at + 1}/{versions.length}
            </span>
            <IconButton small label={w.turn.following} disabled={!after} onClick={() => after && actions.show(after)}>
              <ChevronRight size={15} aria-hidden />
            </IconButton>
          </span>
        )}
      </div>
    </div>
  )
}

interface Props {
  turn: Turn
  /** The ids of all versions of this question, joined, so that it can be compared. */
  versions: string
  /** A turn of this conversation runs. */
  busy: boolean
  editing: boolean
  onEdit: (turn: string | null) => void
  actions: TurnActions
  /** The answer was written before a step of it or above ran again. */
  outdated: boolean
  /** Its state was taken back. */
  undone: boolean
  /** What is left of variables and files when the server was lost with this turn, or ''. */
  saved: string
}

function costOf({ cost }: Turn, w: Words): string {
  if (!cost) return ''
  const said = money(cost.amount, cost.currency, w.lang)
  return cost.estimated ? w.turn.about(said) : said
}

function triedAs({ tries }: Turn, w: Words): string {
  if (!tries?.of) return ''
  const name = w.tries.name(tries.place ?? 0)
  return tries.passed === undefined ? name : `${name}: ${tries.passed ? w.tries.passed : w.tries.failed}`
}

const running = (turn: Turn) => turn.state === 'running'

export const TurnItem = memo(function TurnItem({
  turn,
  versions,
  busy,
  editing,
  onEdit,
  actions,
  outdated,
  undone,
  saved,
}: Props) {
  const w = useWords()
  const box = useRef<HTMLElement>(null)
  const [near, setNear] = useState(running(turn))
  useEffect(() => {
    if (near || !box.current) return
    const watch = new IntersectionObserver((seen) => seen.some((s) => s.isIntersecting) && setNear(true), {
      rootMargin: '800px',
    })
    watch.observe(box.current)
    return () => watch.disconnect()
  }, [near])
  // A turn that never ran a step has its answer in its record.
  const wanted = near && (running(turn) || turn.last_event > 0)
  const live = useMemo(() => (wanted ? turnLive(turn.id, running(turn)) : null), [wanted, turn])
  useLive(live)
  const view = live && (live.view.last > 0 || live.loaded) ? live.view : null
  const over = view ? view.state !== 'running' : !running(turn)
  const { work, answer } = view ? blocksOf(view) : { work: [], answer: turn.answer }
  const files = useMemo(
    () => new Map((view ? stepsOf(view) : []).flatMap((s) => s.files.map((f) => [f.path, { ...f, step: s.number }]))),
    [view, view?.version],
  )
  const all = view ? stepsOf(view) : []
  const spent = turn.finished_at
    ? (Date.parse(turn.finished_at) - Date.parse(turn.created_at)) / 1000
    : all.reduce((sum, s) => sum + (s.done?.seconds ?? 0), 0)
  const tokens = view?.tokens
    ? view.tokens.input + view.tokens.output
    : turn.usage.input_tokens + turn.usage.output_tokens
  const reason = view?.reason || turn.reason || ''
  const failure =
    view?.failure ??
    (turn.state === 'failed' && turn.problem
      ? (turn.problem as { message?: string; detail?: string; hint?: string; code?: string })
      : null)
  const stopped = turn.state === 'canceled' || failure?.code === 'canceled' || failure?.code === 'turn_canceled'
  const address = turn.session ? (path: string) => fileAddress(turn.session ?? '', path) : null
  return (
    <article
      ref={box}
      id={turn.id}
      className={css.turn}
      data-turn
      data-undone={undone || undefined}
      aria-keyshortcuts="Alt+ArrowUp Alt+ArrowDown"
      tabIndex={-1}
    >
      <Asked
        turn={turn}
        versions={versions.split(' ')}
        actions={actions}
        locked={busy}
        editing={editing}
        onEdit={(on) => onEdit(on ? turn.id : null)}
      />
      <div className={css.reply} role={over ? undefined : 'log'} aria-busy={!over}>
        <SessionTables session={near ? turn.session : undefined}>
          <Work blocks={work} turn={turn.id} live={!over} />
        </SessionTables>
        {answer && <LastFailed view={view} />}
        {answer && over && outdated && <StaleAnswer busy={busy} onAnew={() => actions.anew(turn)} />}
        {answer && (
          <div className={css.answer}>
            <Markdown
              text={answer}
              live={!over}
              files={(path) => (address && files.has(path) ? address(path) : null)}
            />
          </div>
        )}
        {!over && <Status view={view} answering={!!answer} />}
        {over && turn.session && <Made files={[...files.values()]} session={turn.session} turn={turn.id} />}
        {over && (
          <Ending
            stopped={stopped ? w.turn.stopped : ''}
            lost={turn.state === 'lost' || failure?.code === 'turn_lost' ? `${w.turn.lost} ${saved}`.trim() : ''}
            failure={failure}
            reason={reason}
            onAgain={busy ? undefined : () => actions.again(turn, turn.prompt)}
          />
        )}
        {live?.link.link === 'failed' && live.link.problem && <ProblemBox error={live.link.problem} />}
        {over && (
          <footer className={css.foot}>
            <span>
              {[
                triedAs(turn, w),
                all.length > 0 ? w.turn.steps(all.length) : '',
                spent > 0 ? seconds(spent) : '',
                tokens > 0 ? w.turn.tokens(count(tokens, w.lang)) : '',
                costOf(turn, w),
              ]
                .filter(Boolean)
                .join(' · ')}
            </span>
            <IconButton small label={w.turn.copyAnswer} onClick={() => copyText(answer, w.copied)} disabled={!answer}>
              <Copy size={15} aria-hidden />
            </IconButton>
            <Rate turn={turn} />
            <IconButton small label={w.turn.retry} disabled={busy} onClick={() => actions.again(turn, turn.prompt)}>
              <RotateCcw size={15} aria-hidden />
            </IconButton>
            <IconButton small label={w.turn.fork} onClick={() => actions.fork(turn)}>
              <GitFork size={15} aria-hidden />
            </IconButton>
            {turn.session && !turn.origin && (
              <IconButton small label={w.turn.back} data-back disabled={busy} onClick={() => actions.back(turn)}>
                <CornerUpLeft size={15} aria-hidden />
              </IconButton>
            )}
          </footer>
        )}
      </div>
    </article>
  )
})
