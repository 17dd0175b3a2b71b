import { useWords } from '../words'
import { readable } from './quote'
import css from './turn.module.css'

/** What a question quotes for the model, folded. */
export function Quote({ text }: { text: string }) {
  const w = useWords()
  if (!text) return null
  return (
    <details className={css.quote}>
      <summary>{w.turn.quoted}</summary>
      <pre dir="auto">{readable(text)}</pre>
    </details>
  )
}
