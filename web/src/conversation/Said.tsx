import { blocksOf, lastFailed } from '../events/group'
import type { Part, TurnView } from '../events/turn'
import { Markdown } from '../output'
import { useWords } from '../words'
import css from './turn.module.css'

/** What a model said or thought between its steps, or what the server said of them. */
export function Said({ part, live }: { part: Exclude<Part, { kind: 'step' }>; live: boolean }) {
  const w = useWords()
  if (part.kind === 'reasoning')
    return (
      <details className={css.reasoning}>
        <summary>{w.turn.reasoning}</summary>
        <p dir="auto">{part.text}</p>
      </details>
    )
  if (part.kind === 'notice') return <p className={css.notice}>{part.text}</p>
  return (
    <div className={css.said} dir="auto">
      <Markdown text={part.text} live={live} />
    </div>
  )
}

/** Says above an answer that the step before it failed. */
export function LastFailed({ view }: { view: TurnView | null }) {
  const w = useWords()
  const step = view && view.state === 'answered' ? lastFailed(blocksOf(view).work) : null
  if (!step) return null
  const outcome = step.done?.outcome ?? ''
  const name = (outcome === 'error' ? step.error?.name : w.outcomes[outcome]) ?? w.turn.failed
  return <p className={css.warned}>{w.turn.lastFailed(name.slice(0, 80))}</p>
}
