import { useMemo } from 'react'
import { parts } from '../parts'
import { useWords } from '../words'
import { brief, diff } from './diff'
import css from './step.module.css'

const sign = { same: ' ', gone: '−', new: '+' }

/** How an attempt was changed into the next one. */
export function Diff({ before, after }: { before: string; after: string }) {
  const w = useWords()
  const lines = useMemo(() => diff(before, after), [before, after])
  const shown = useMemo(() => (lines ? brief(lines) : []), [lines])
  if (!lines) return <p className={css.note}>{w.turn.diffLong}</p>
  if (lines.every((l) => l.kind === 'same')) return <p className={css.note}>{w.turn.diffNone}</p>
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls sideways
    <section className={css.diff} aria-label={w.turn.diff} tabIndex={0}>
      {shown.map((l, i) =>
        l.kind === 'left' ? (
          // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other name
          <span key={i} className={css.left}>
            {w.turn.sameLines(l.count)}
          </span>
        ) : (
          // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other name
          <span key={i} data-kind={l.kind}>
            <i aria-hidden>{sign[l.kind]}</i>
            {l.kind !== 'same' && (
              <span className={parts.hidden}>{l.kind === 'gone' ? w.turn.gone_ : w.turn.new_}</span>
            )}
            {l.text || ' '}
          </span>
        ),
      )}
    </section>
  )
}
