import { Problem } from '../api/problem'
import { Button, ProblemBox, parts } from '../parts'
import { useWords } from '../words'
import css from './turn.module.css'

interface Props {
  /** What is said when somebody stopped the turn, and when the server was lost meanwhile; '' when that is not so. */
  stopped: string
  lost: string
  failure: { code?: string; message?: string; detail?: string; hint?: string } | null | undefined
  /** Why the answer came, see the API. */
  reason: string
  /** Asks the question again; left out where nobody can. */
  onAgain?: (() => void) | undefined
}

/** Why a turn ended in another way than with an answer. */
export function Ending({ stopped, lost, failure, reason, onAgain }: Props) {
  const w = useWords()
  return (
    <>
      {stopped && <p className={css.notice}>{stopped}</p>}
      {lost && (
        <div className={`${parts.problem} ${css.lost}`} role="alert">
          <p>{lost}</p>
          {onAgain && <Button onClick={onAgain}>{w.turn.askAgain}</Button>}
        </div>
      )}
      {failure && !stopped && !lost && (
        <ProblemBox
          error={
            new Problem(0, {
              code: failure.code || 'failure',
              detail: failure.message || failure.detail || w.turn.failedTitle,
              hint: failure.hint ?? '',
            })
          }
          onRetry={onAgain}
          retry={w.turn.editGo}
        />
      )}
      {reason && reason !== 'complete' && !stopped && (
        <p className={css.notice}>
          {w.turn.notAll} {w.turn.reasons[reason] ?? reason}
        </p>
      )}
    </>
  )
}
