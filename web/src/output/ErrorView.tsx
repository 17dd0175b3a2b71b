import { memo, type ReactNode, useMemo, useState } from 'react'
import css from './notes.module.css'
import { styled } from './TerminalView'
import { Terminal } from './terminal'
import { frames, parts } from './traceback'
import type { ErrorEvent } from './types'
import { fill, plain, words } from './words'

export const ErrorView = memo(function ErrorView({ event }: { event: ErrorEvent }) {
  const w = words()
  const trace = useMemo(() => (Array.isArray(event.traceback) ? event.traceback : []), [event])
  const own = useMemo(() => frames(trace).findLast((f) => f.own), [trace])
  const [open, setOpen] = useState(false)
  return (
    <section className={css.error}>
      <p className={css.title}>
        <b>{plain(event.name, 200)}</b>
        {event.value ? ': ' : ''}
        <span>{ansi(String(event.value ?? '').slice(0, open ? 20_000 : 600))}</span>
      </p>
      {event.hint && <p className={css.hint}>{plain(event.hint, 1000)}</p>}
      {own && own.lines.length > 0 && (
        <div className={css.own}>
          <span className={css.where}>
            {plain(own.file, 80)} · {fill(w.line, { n: own.line })}
          </span>
          <pre>{dedent(own.lines.slice(0, 6)).join('\n')}</pre>
        </div>
      )}
      {trace.length > 0 && (
        <details className={css.details} onToggle={(e) => setOpen(e.currentTarget.open)}>
          <summary>{w.traceback}</summary>
          {open && <Trace lines={trace} />}
        </details>
      )}
    </section>
  )
})

function Trace({ lines }: { lines: readonly string[] }) {
  const w = words()
  return parts(lines).map((p, i) =>
    p.own ? (
      // biome-ignore lint/suspicious/noArrayIndexKey: parts have no other name
      <pre key={i}>{p.text}</pre>
    ) : (
      // biome-ignore lint/suspicious/noArrayIndexKey: parts have no other name
      <details key={i} className={css.library}>
        <summary>{fill(w.libraryFrames, { n: p.frames })}</summary>
        <pre>{p.text}</pre>
      </details>
    ),
  )
}

function dedent(lines: string[]): string[] {
  const least = Math.min(...lines.map((l) => /^ */.exec(l)?.[0].length ?? 0))
  return lines.map((l) => l.slice(least))
}

function ansi(text: string): ReactNode {
  if (!text.includes('\x1b')) return text
  const t = new Terminal()
  t.write(text)
  return t.tail.map((line, i) => {
    let at = 0
    const runs = line.runs ?? [[line.text.length, null] as const]
    return runs.map(([n, style], k) => {
      const part = line.text.slice(at, at + n) + (k === runs.length - 1 && i < t.tail.length - 1 ? '\n' : '')
      at += n
      return style ? styled(part, style, `${i}.${k}`) : part
    })
  })
}
