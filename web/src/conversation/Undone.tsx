import type { Turn } from '../api/client'
import { useWords } from '../words'
import css from './conversation.module.css'

/** Says after a turn that what follows it goes on with an earlier state. */
export function Undone({
  turn,
  questions,
  onRedo,
}: {
  turn: Turn
  questions: number
  onRedo?: (() => void) | undefined
}) {
  const w = useWords()
  return (
    <p className={`${css.forked} ${css.undone}`} data-undone-to={turn.undone?.from}>
      <span>{w.turn.undone(questions)}</span>
      {onRedo && (
        <button type="button" onClick={onRedo}>
          {w.turn.redo}
        </button>
      )}
    </p>
  )
}
