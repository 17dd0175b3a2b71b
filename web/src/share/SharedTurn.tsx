import { FileText } from 'lucide-react'
import { memo, useMemo } from 'react'
import type { Schemas } from '../api/client'
import { Ending } from '../conversation/Ending'
import { Quote } from '../conversation/Quote'
import { splitQuote } from '../conversation/quote'
import { LastFailed } from '../conversation/Said'
import turnCss from '../conversation/turn.module.css'
import { Work } from '../conversation/Work'
import { blocksOf } from '../events/group'
import { applyTurn, newTurn, type TurnView } from '../events/turn'
import { Markdown } from '../output'
import { bytes, plainName } from '../parts/format'
import { useWords } from '../words'
import css from './share.module.css'

type Shared = Schemas['SharedTurn']

/** A turn as its events tell it. What is no event is left out. */
export function viewOf(turn: Pick<Shared, 'id' | 'events'>): TurnView {
  const view = newTurn(turn.id)
  for (const event of turn.events)
    if (event && typeof event === 'object') applyTurn(view, 0, event as Record<string, unknown>)
  return view
}

/** A question with its steps and its answer, to be read. */
export const SharedTurn = memo(function SharedTurn({ turn }: { turn: Shared }) {
  const w = useWords()
  const { question, quote } = splitQuote(turn.prompt)
  const view = useMemo(() => viewOf(turn), [turn])
  const { work, answer } = useMemo(() => blocksOf(view), [view])
  const said = answer || turn.answer
  const failure =
    view.failure ?? (turn.state === 'failed' ? (turn.problem as { message?: string; hint?: string } | undefined) : null)
  const reason = view.reason || turn.reason || ''
  return (
    <article className={turnCss.turn}>
      <div className={`${turnCss.asked} ${css.asked}`}>
        <div className={turnCss.question}>
          <h2 className={turnCss.hidden}>{w.turn.you}</h2>
          <p dir="auto">{question}</p>
          <Quote text={quote} />
        </div>
      </div>
      <div className={turnCss.reply}>
        <Work blocks={work} turn={`shared/${turn.id}`} live={false} folded />
        {said && <LastFailed view={view} />}
        {said && turn.outdated && <p className={turnCss.warned}>{w.turn.staleAnswer}</p>}
        {said && (
          <div className={turnCss.answer}>
            <Markdown text={said} />
          </div>
        )}
        {turn.files.length > 0 && (
          <ul className={css.files} aria-label={w.shared.made} title={w.shared.made}>
            {turn.files.map((f) => (
              <li key={f.name}>
                <FileText size={14} aria-hidden />
                <bdi>{plainName(f.name)}</bdi>
                <span>{bytes(f.size)}</span>
              </li>
            ))}
          </ul>
        )}
        <Ending
          stopped={turn.state === 'canceled' ? w.shared.stopped : ''}
          lost={turn.state === 'lost' ? w.shared.lost : ''}
          failure={failure}
          reason={reason}
        />
      </div>
    </article>
  )
})
