import { useMemo } from 'react'
import type { Turn } from '../api/client'
import { useSession } from '../api/queries'
import { Ending } from '../conversation/Ending'
import { splitQuote } from '../conversation/quote'
import { blocksOf } from '../events/group'
import { turnLive, useLive } from '../events/live'
import { Code, Markdown } from '../output'
import { SessionTables } from '../panels/tables'
import { plainName } from '../parts/format'
import { useWords } from '../words'
import { PrintOutput } from './PrintOutput'
import { usePending } from './pending'
import css from './print.module.css'

/** A question with its answer, on paper; with or without the code of its steps and what they wrote. */
export function PrintTurn({ turn, code, outdated }: { turn: Turn; code: boolean; outdated: boolean }) {
  const w = useWords()
  const running = turn.state === 'running'
  const live = useMemo(() => (turn.last_event > 0 ? turnLive(turn.id, running) : null), [turn, running])
  useLive(live)
  usePending(!!live && !running && !live.loaded && live.link.link !== 'failed')
  // Whether the rest of a table can be read is for its session to say.
  const { isPending } = useSession(turn.session)
  usePending(!!turn.session && isPending)
  const view = live?.view
  const { work, answer } = view ? blocksOf(view) : { work: [], answer: '' }
  const said = answer || turn.answer
  const { question, quote } = splitQuote(turn.prompt)
  const files = turn.files ?? []
  return (
    <section className={css.turn}>
      <div className={css.question}>
        <h2>{w.turn.you}</h2>
        <p dir="auto">{question}</p>
        {code && quote && <p className={css.quote}>{quote.trim()}</p>}
        {files.length > 0 && <p className={css.more}>{files.map((f) => plainName(f.name)).join(', ')}</p>}
      </div>
      <SessionTables session={turn.session}>
        {work.map((b, i) => {
          if (b.kind === 'group')
            return (
              <div key={`s${b.step.number}`} className={css.step}>
                {code && <Code text={b.step.code} language="python" />}
                <PrintOutput items={b.step.items} texts={code} />
              </div>
            )
          if (!code || b.kind !== 'text') return null
          // biome-ignore lint/suspicious/noArrayIndexKey: blocks are only added at the end
          return <Markdown key={`t${i}`} text={b.text} />
        })}
      </SessionTables>
      {said && outdated && <p className={css.more}>{w.turn.staleAnswer}</p>}
      {said && (
        <div className={css.answer} dir="auto">
          <Markdown text={said} />
        </div>
      )}
      <Ending
        stopped={turn.state === 'canceled' ? w.turn.stopped : ''}
        lost={turn.state === 'lost' ? w.turn.lost : ''}
        failure={view?.failure ?? (turn.state === 'failed' ? (turn.problem as { message?: string } | undefined) : null)}
        reason={view?.reason || turn.reason || ''}
      />
    </section>
  )
}
