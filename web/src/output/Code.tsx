import { Check, Copy } from 'lucide-react'
import { memo, type ReactNode, useContext, useRef, useState } from 'react'
import css from './code.module.css'
import { Highlighter, type Piece } from './highlight'
import { PaperContext } from './paper'
import { copyText, Tool, useSaid } from './parts'
import { fill, words } from './words'

const fold = 40 // lines that are shown of code that is longer than `long`
const long = 60
const bound = 500_000

interface Props {
  text: string
  language?: string
  live?: boolean
  /** Show all lines from the start. */
  open?: boolean
}

export const Code = memo(function Code({ text, language = 'python', live = false, open = false }: Props) {
  const w = words()
  const highlighter = useRef<Highlighter>(undefined)
  const paper = useContext(PaperContext)
  const [unfolded, setAll] = useState(open)
  const all = unfolded || paper
  const [said, say] = useSaid()
  const python = /^(python3?|py|ipython)$/i.test(language)
  highlighter.current ??= new Highlighter()
  const bounded = text.length > bound ? text.slice(0, bound) : text
  const trimmed = bounded.replace(/\n+$/, '')
  const lines = python ? highlighter.current.lines(trimmed) : trimmed.split('\n').map((t): Piece[] => [[t, '']])
  const folded = !all && !live && lines.length > long
  const shown = folded ? lines.slice(0, fold) : live && !all && lines.length > 400 ? lines.slice(-400) : lines
  return (
    <div className={css.code} data-folded={folded || undefined}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: wide code has to be scrolled with the keyboard */}
      <pre className={css.text} tabIndex={0}>
        <code>
          {shown.map((line, i) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other name
            <Row key={i} line={line} last={i === shown.length - 1} />
          ))}
          {live && <span className={css.caret} />}
        </code>
      </pre>
      {!live && (
        <div className={css.copy}>
          <Tool icon={said === w.copied ? Check : Copy} label={said || w.copy} onPress={() => say(copyText(text))} />
        </div>
      )}
      {!live && !open && lines.length > long && (
        <button type="button" className={css.more} onClick={() => setAll(!all)} aria-expanded={all}>
          {all ? w.foldCode : fill(w.showAllLines, { n: lines.length })}
        </button>
      )}
    </div>
  )
})

const Row = memo(
  ({ line, last }: { line: Piece[]; last: boolean }) => {
    const out: ReactNode[] = []
    for (const [i, [text, name]] of line.entries()) {
      if (!name) out.push(text)
      else
        out.push(
          <span key={i} className={css[name]}>
            {text}
          </span>,
        )
    }
    if (!last) out.push('\n')
    return out
  },
  (a, b) =>
    a.last === b.last &&
    a.line.length === b.line.length &&
    a.line.every(([t, n], i) => t === b.line[i]?.[0] && n === b.line[i]?.[1]),
)
