import { useVirtualizer } from '@tanstack/react-virtual'
import { type CSSProperties, memo, type ReactNode, useRef, useState } from 'react'
import type { Line, Style, Terminal } from './terminal'
import css from './terminal.module.css'
import { fill, words } from './words'

const shown = 2000
const chunk = 200
const wide = 10_000

interface Props {
  terminal: Terminal
  version: number
  name: 'stdout' | 'stderr'
  /** Asked for when lines were not kept: the same output folded again without that limit. */
  whole?: () => Terminal | null
}

export const TerminalView = memo(function TerminalView({ terminal, name, whole }: Props) {
  const w = words()
  const [all, setAll] = useState<Terminal | null>(null)
  const total = terminal.count
  if (total === 0) return null
  const hidden = total - Math.min(total, shown)
  const label = name === 'stderr' ? w.errorsStream : undefined
  if (all) {
    return (
      <section className={css.block} data-stream={name} aria-label={label}>
        <button type="button" className={css.more} onClick={() => setAll(null)}>
          {w.showLess}
        </button>
        <Whole terminal={all} />
      </section>
    )
  }
  const open = () => setAll((terminal.dropped > 0 && whole?.()) || terminal)
  const first = (terminal.head.length > 0 ? terminal.head : terminal.tail).slice(0, 20)
  const dropped = terminal.dropped
  return (
    <section className={css.block} data-stream={name} aria-label={label}>
      {hidden > 0 && (
        <>
          {hidden > 20 && <pre className={css.text}>{render(first)}</pre>}
          <button type="button" className={css.more} onClick={open}>
            … {fill(w.linesNotShown, { n: hidden > 20 && first.length === 20 ? hidden - 20 : hidden })} · {w.showAll}
          </button>
        </>
      )}
      <pre className={css.text}>
        <Chunks lines={terminal.tail} offset={terminal.head.length + dropped} from={hidden} head={terminal.head} />
      </pre>
    </section>
  )
})

/** The newest lines in pieces that begin at fixed numbers, so that only the last one is drawn again. */
function Chunks({ lines, offset, from, head }: { lines: Line[]; offset: number; from: number; head: Line[] }) {
  const at = (n: number) => (n < head.length ? head[n] : lines[n - offset])
  const end = offset + lines.length
  const out: ReactNode[] = []
  for (let start = from; start < end; ) {
    const stop = Math.min(end, (Math.floor(start / chunk) + 1) * chunk)
    const part: Line[] = []
    for (let n = start; n < stop; n++) {
      const line = at(n)
      if (line) part.push(line)
    }
    out.push(<Chunk key={Math.floor(start / chunk)} lines={part} last={stop === end} />)
    start = stop
  }
  return out
}

const Chunk = memo(
  ({ lines, last }: { lines: Line[]; last: boolean }) => (
    <>
      {render(lines)}
      {last ? '' : '\n'}
    </>
  ),
  (a, b) => a.last === b.last && a.lines.length === b.lines.length && a.lines.every((l, i) => l === b.lines[i]),
)

/** Text without a style is one text node. */
function render(lines: readonly Line[]): ReactNode[] {
  const out: ReactNode[] = []
  let text = ''
  const flush = () => {
    if (text) out.push(text)
    text = ''
  }
  lines.forEach((line, i) => {
    if (i > 0) text += '\n'
    if (line.text.length > wide || line.more > 0) {
      flush()
      // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other name
      out.push(<Wide key={`w${i}`} line={line} />)
    } else if (!line.runs) text += line.text
    else {
      let at = 0
      for (const [length, style] of line.runs) {
        const part = line.text.slice(at, at + length)
        at += length
        if (!style) text += part
        else {
          flush()
          out.push(styled(part, style, `${i}.${at}`))
        }
      }
    }
  })
  flush()
  return out
}

export function styled(text: string, style: Style, key: string): ReactNode {
  const { fg, bg } = style.inverse ? { fg: style.bg ?? 'ground', bg: style.fg ?? 'text' } : style
  const inline: CSSProperties = {}
  const names: (string | undefined)[] = []
  if (typeof fg === 'number') names.push(css[`f${fg}`])
  else if (fg === 'ground') inline.color = 'var(--ground)'
  else if (fg) inline.color = bg ? fg : `color-mix(in srgb, ${fg} 55%, var(--text))` // readable on either ground
  if (typeof bg === 'number') names.push(css[`b${bg}`])
  else if (bg === 'text') inline.background = 'var(--text)'
  else if (bg) inline.background = bg
  for (const flag of ['bold', 'dim', 'italic', 'underline', 'strike'] as const) if (style[flag]) names.push(css[flag])
  return (
    <span key={key} className={names.join(' ') || undefined} style={inline}>
      {text}
    </span>
  )
}

function Wide({ line }: { line: Line }) {
  const [length, setLength] = useState(wide)
  const rest = line.text.length - length
  return (
    <>
      {line.text.slice(0, length)}
      {rest > 0 && (
        <button type="button" className={css.inline} onClick={() => setLength(length + 100_000)}>
          … {fill(words().show, { n: Math.min(rest, 100_000) })}
        </button>
      )}
      {rest <= 0 && line.more > 0 && (
        <span className={css.note}>… {fill(words().charactersNotKept, { n: line.more })}</span>
      )}
    </>
  )
}

function Whole({ terminal }: { terminal: Terminal }) {
  const scroller = useRef<HTMLDivElement>(null)
  const { head, tail, dropped } = terminal
  const rows = head.length + tail.length + (dropped > 0 ? 1 : 0)
  const list = useVirtualizer({
    count: rows,
    getScrollElement: () => scroller.current,
    estimateSize: () => 20,
    overscan: 30,
  })
  const line = (n: number): ReactNode => {
    if (n < head.length) return render([head[n] as Line])
    if (dropped > 0 && n === head.length)
      return <span className={css.note}>… {fill(words().linesNotShown, { n: dropped })}</span>
    const found = tail[n - head.length - (dropped > 0 ? 1 : 0)]
    return found ? render([found]) : null
  }
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scroller has to be reached with the keyboard
    <section ref={scroller} className={css.whole} tabIndex={0} aria-label={words().showAll}>
      <div className={css.room} style={{ height: list.getTotalSize() }}>
        {list.getVirtualItems().map((item) => (
          <pre
            key={item.key}
            ref={list.measureElement}
            data-index={item.index}
            className={css.row}
            style={{ transform: `translateY(${item.start}px)` }}
          >
            {line(item.index)}
          </pre>
        ))}
      </div>
    </section>
  )
}
