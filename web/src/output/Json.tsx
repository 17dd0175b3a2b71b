import { useState } from 'react'
import css from './notes.module.css'
import { fill, number, plain, words } from './words'

const page = 100
const deepest = 40

export function Json({ value }: { value: unknown }) {
  return (
    <div className={css.json}>
      <Node value={value} depth={0} />
    </div>
  )
}

function Node({ name, value, depth }: { name?: string; value: unknown; depth: number }) {
  const w = words()
  const [open, setOpen] = useState(depth === 0)
  const [shown, setShown] = useState(page)
  const label = name === undefined ? null : <span className={css.key}>{plain(name, 120)}: </span>
  if (value === null || typeof value !== 'object') {
    return (
      <div className={css.leaf}>
        {label}
        <Leaf value={value} />
      </div>
    )
  }
  const list = Array.isArray(value)
  const keys = list ? null : Object.keys(value)
  const count = keys ? keys.length : (value as unknown[]).length
  if (count === 0 || depth >= deepest) {
    return (
      <div className={css.leaf}>
        {label}
        {count === 0 ? (list ? '[]' : '{}') : '…'}
      </div>
    )
  }
  const items = Array.from({ length: Math.min(shown, count) }, (_, i) => keys?.[i] ?? String(i))
  return (
    <details open={open} onToggle={(e) => e.target === e.currentTarget && setOpen(e.currentTarget.open)}>
      <summary>
        {label}
        <span className={css.count}>
          {list ? '[' : '{'} {count === 1 ? w.oneItem : fill(w.items, { n: count })} {list ? ']' : '}'}
        </span>
      </summary>
      {open &&
        items.map((k) => <Node key={k} name={k} value={(value as Record<string, unknown>)[k]} depth={depth + 1} />)}
      {open && count > shown && (
        <button type="button" className={css.more} onClick={() => setShown(shown + page * 5)}>
          {fill(w.moreItems, { n: count - shown })}
        </button>
      )}
    </details>
  )
}

function Leaf({ value }: { value: unknown }) {
  if (typeof value === 'string') {
    return (
      <span className={css.string}>
        "{value.length > 2000 ? `${value.slice(0, 2000)}… (${number(value.length)})` : value}"
      </span>
    )
  }
  return <span className={css.number}>{String(value)}</span>
}
