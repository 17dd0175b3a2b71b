import { Fragment, useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { createPortal } from 'react-dom'
import type { Turn } from '../api/client'
import type { OwnChart } from '../chart/own'
import { outdatedOf, undoneOf } from '../conversation/marks'
import { PaperContext } from '../output'
import { Button } from '../parts'
import { day } from '../parts/format'
import { isMod, usePageKeys } from '../parts/keys'
import { useWords } from '../words'
import { PrintOwnChart } from './PrintOwnChart'
import { PrintTurn } from './PrintTurn'
import { PendingContext } from './pending'
import css from './print.module.css'

const mostTurns = 200

interface Props {
  title: string
  branch: readonly Turn[]
  created: string | undefined
  /** By the turns that they stand after. */
  charts?: ReadonlyMap<string, readonly OwnChart[]>
  onClose: () => void
}

/** Whether a step of the conversation is unfolded, as the reader left it. */
const hasCodeOpen = () => !!document.querySelector('[data-step][aria-expanded="true"]')

/** The conversation as it is printed, over the page; on paper there is nothing else. */
export default function PrintView({ title, branch, created, charts, onClose }: Props) {
  const w = useWords()
  const p = w.print
  const [code, setCode] = useState(hasCodeOpen)
  const [pending, setPending] = useState(1)
  const count = useCallback((by: 1 | -1) => setPending((n) => n + by), [])
  const go = useRef<HTMLButtonElement>(null)
  const ready = pending === 0
  // What is in the document counts itself before this is taken back.
  useEffect(() => {
    count(-1)
    return () => count(1)
  }, [count])
  useEffect(() => {
    const root = document.getElementById('root')
    const from = document.activeElement
    root?.setAttribute('inert', '')
    go.current?.focus()
    return () => {
      root?.removeAttribute('inert')
      if (from instanceof HTMLElement) from.focus()
    }
  }, [])
  const print = () => ready && window.print()
  usePageKeys((e) => {
    if (e.key === 'Escape') onClose()
    else if (isMod(e) && e.code === 'KeyP' && !e.shiftKey && !e.altKey) print()
    else return
    e.preventDefault()
  })
  const undone = useMemo(() => undoneOf([...branch]), [branch])
  const outdated = useMemo(() => outdatedOf([...branch]), [branch])
  const all = branch.filter((t) => !undone.has(t.id))
  const turns = all.slice(-mostTurns)
  return createPortal(
    <div className={css.layer} role="dialog" aria-modal aria-label={p.title}>
      <div className={css.bar}>
        <label>
          <input type="checkbox" checked={code} onChange={(e) => setCode(e.currentTarget.checked)} />
          {p.withCode}
        </label>
        <span className={css.state} role="status">
          {ready ? '' : p.preparing}
        </span>
        <Button onClick={onClose}>{w.close}</Button>
        <Button ref={go} look="primary" onClick={print} aria-disabled={!ready}>
          {p.go}
        </Button>
      </div>
      <PaperContext value={true}>
        <PendingContext value={count}>
          <article className={css.document} data-ready={ready || undefined}>
            <header>
              <h1 dir="auto">{title}</h1>
              {created && <p>{day(created, w.lang)}</p>}
              {all.length > turns.length && <p>{p.earlier(all.length - turns.length)}</p>}
            </header>
            {turns.map((t) => (
              <Fragment key={t.id}>
                <PrintTurn turn={t} code={code} outdated={outdated.has(t.id)} />
                {charts?.get(t.id)?.map((c) => (
                  <PrintOwnChart key={c.id} chart={c} code={code} />
                ))}
              </Fragment>
            ))}
          </article>
        </PendingContext>
      </PaperContext>
    </div>,
    document.body,
  )
}
