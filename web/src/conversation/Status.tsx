import { useEffect, useRef, useState } from 'react'
import { steps, type TurnView } from '../events/turn'
import { useWords } from '../words'
import { Elapsed } from './Elapsed'
import css from './turn.module.css'

/** What happens now, in words. Changes of it are announced; the words of the model are not. */
export function Status({ view, answering }: { view: TurnView | null; answering: boolean }) {
  const w = useWords()
  const last = view ? steps(view).at(-1) : undefined
  const busy = last?.state === 'writing' || last?.state === 'running'
  const failed = last?.state === 'failed'
  const waits = last?.state === 'waiting'
  const said = waits
    ? w.approval.waitsLong
    : failed
      ? w.turn.stepFailed(last.number)
      : answering
        ? w.turn.answering
        : w.turn.thinking
  const [long, setLong] = useState(false)
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  useEffect(() => {
    timer.current = setTimeout(() => setLong(true), 30_000)
    return () => clearTimeout(timer.current)
  }, [])
  return (
    <p className={css.status} role="status">
      {!busy && !answering && (
        <span key={said}>
          {said}{' '}
          {!waits && (
            <span className={css.elapsed} aria-hidden>
              <Elapsed from={3} />
            </span>
          )}
        </span>
      )}
      {long && !waits && <span>{w.turn.canClose}</span>}
    </p>
  )
}
