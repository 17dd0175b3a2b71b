import { Copy } from 'lucide-react'
import { useId } from 'react'
import { Button, copyText, parts } from '../parts'
import { useWords } from '../words'
import css from './share.module.css'

/** An address that is shown this once, to be copied. */
export function Address({ text, address }: { text: string; address: string }) {
  const w = useWords()
  const id = useId()
  return (
    <div className={css.made} role="status">
      <label htmlFor={id}>{text}</label>
      <div>
        <input
          id={id}
          className={parts.field}
          value={address}
          readOnly
          dir="ltr"
          spellCheck={false}
          autoComplete="off"
          onFocus={(e) => e.currentTarget.select()}
        />
        <Button onClick={() => void copyText(address, w.copied)}>
          <Copy size={15} aria-hidden />
          {w.copy}
        </Button>
      </div>
    </div>
  )
}
