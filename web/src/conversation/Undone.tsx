import { useEffect, useState } from 'react'
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

/** Moves the focus on when the last turn of a branch is shown as undone, or no more: to the way back from that. It stays where it is when it has left for elsewhere. */
export function useUndoFocus(last: Pick<Turn, 'id' | 'undone'> | undefined) {
  const [moved, setMoved] = useState<{ turn: string; undone: boolean } | null>(null)
  useEffect(() => {
    if (!moved) return
    const isLast = last?.id === moved.turn
    if (isLast && !!last.undone !== moved.undone) return
    setMoved(null)
    // Another turn came after it meanwhile, as from another window: the focus is not to go there later.
    if (!isLast) return
    const at = document.activeElement
    if (at && at !== document.body && !at.closest('[data-turn], [data-undone-to]')) return
    const turn = document.getElementById(moved.turn)
    const next = moved.undone
      ? turn?.nextElementSibling?.querySelector<HTMLElement>('button')
      : turn?.querySelector<HTMLElement>('[data-back]')
    const to = next ?? turn
    to?.focus()
  }, [moved, last])
  return setMoved
}
