import { useState } from 'react'
import { useWords } from '../words'
import css from './turn.module.css'

/** Says above an answer that a step was changed since, and has it answered again, once at a time. */
export function StaleAnswer({ busy, onAnew }: { busy: boolean; onAnew: () => Promise<void> }) {
  const w = useWords()
  const [working, setWorking] = useState(false)
  return (
    <p className={css.warned}>
      {w.turn.staleAnswer}
      <button
        type="button"
        disabled={busy || working}
        aria-busy={working}
        onClick={async () => {
          setWorking(true)
          await onAnew().finally(() => setWorking(false))
        }}
      >
        {working ? w.turn.anewing : w.turn.anew}
      </button>
    </p>
  )
}
