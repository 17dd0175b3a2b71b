import { useEffect, useRef, useState } from 'react'
import type { Box } from './gridMath'
import { copyVia, save } from './parts'
import { asHtml, csv, tsv, type Value } from './table'
import type { View } from './view'
import { fill, number, words } from './words'

export const mostCopied = 200_000 // cells
export const mostSaved = 200_000 // rows
const mostText = 200_000_000 // characters, about

type Contents = Record<'text/plain' | 'text/html', string>
const contents = (block: readonly (readonly Value[])[]): Contents => ({
  'text/plain': tsv(block),
  'text/html': asHtml(block),
})

/** How many rows of a block can be copied. */
export function copied(box: Box): number {
  const columns = box.right - box.left + 1
  return Math.min(box.bottom - box.top + 1, Math.max(1, Math.floor(mostCopied / columns)))
}

function all(view: View): Box {
  return { top: 0, bottom: view.count - 1, left: 0, right: view.names.length - 1 }
}

async function gather(view: View, from: number, to: number, signal: AbortSignal, on?: (n: number) => void) {
  const out: (readonly Value[])[] = []
  let text = 0
  await view.rows(from, to, signal, (rows) => {
    for (const r of rows) {
      out.push(r)
      for (const c of r) text += (c?.length ?? 0) + 1
    }
    if (text > mostText) throw new Error(words().tooLong)
    on?.(out.length)
  })
  return out
}

/** Copies and saves what a grid has, with what is to be said of it. */
export function useOut(view: View, box: Box | null) {
  const w = words()
  const [said, setSaid] = useState('')
  const [busy, setBusy] = useState(false)
  const control = useRef<AbortController | null>(null)
  useEffect(() => () => control.current?.abort(), [])
  useEffect(() => {
    if (!said || busy) return
    const timer = setTimeout(() => setSaid(''), 6000)
    return () => clearTimeout(timer)
  }, [said, busy])

  const work = async (what: (signal: AbortSignal) => Promise<string>, failed: string) => {
    control.current?.abort()
    const mine = new AbortController()
    control.current = mine
    setBusy(true)
    try {
      setSaid(await what(mine.signal))
    } catch (error) {
      const why = error instanceof Error && !mine.signal.aborted ? error.message : ''
      setSaid(mine.signal.aborted ? '' : [failed, why].filter(Boolean).join('. '))
    }
    if (control.current === mine) setBusy(false)
  }

  const cells = (rows: readonly (readonly Value[])[], b: Box) => {
    const block = rows.map((r) => Array.from({ length: b.right - b.left + 1 }, (_, i) => r[b.left + i] ?? null))
    return box ? block : [view.names.slice(b.left, b.right + 1), ...block]
  }
  /** The cells of a block that are here, or null if some are not. */
  const here = (b: Box): Contents | null => {
    const rows: (readonly Value[])[] = []
    for (let i = b.top; i < b.top + copied(b); i++) {
      const row = view.row(i)
      if (!row || row.length <= b.right) return null
      rows.push(row)
    }
    return contents(cells(rows, b))
  }
  const copiedSaid = (b: Box) => {
    const n = copied(b)
    return n < b.bottom - b.top + 1 ? fill(w.copiedFirst, { n }) : w.copied
  }
  const copy = () =>
    work(async (signal) => {
      const b = box ?? all(view)
      const now = here(b)
      if (now && !navigator.clipboard?.write) copyVia(now)
      else {
        const later = now
          ? Promise.resolve(now)
          : gather(view, b.top, b.top + copied(b), signal, (n) => setSaid(fill(w.reading, { n: number(n) }))).then(
              (rows) => contents(cells(rows, b)),
            )
        if (!navigator.clipboard?.write) copyVia(await later)
        else {
          const kinds = ['text/plain', 'text/html'] as const
          // The clipboard is asked for in the click; what goes into it may come later.
          const item = Object.fromEntries(kinds.map((k) => [k, later.then((c) => new Blob([c[k]], { type: k }))]))
          await navigator.clipboard.write([new ClipboardItem(item)])
        }
      }
      return copiedSaid(b)
    }, w.notCopied)
  const onCopy = (e: React.ClipboardEvent) => {
    if (!box) return
    e.preventDefault()
    const now = here(box)
    if (!now) return void copy()
    for (const [type, t] of Object.entries(now)) e.clipboardData.setData(type, t)
    setSaid(copiedSaid(box))
  }
  const download = (excel: boolean, name: string) =>
    work(async (signal) => {
      const most = Math.min(view.count, mostSaved)
      const rows = await gather(view, 0, most, signal, (n) => {
        if (view.count > 2000) setSaid(fill(w.readingOf, { n: number(n), all: number(most) }))
      })
      const file = excel
        ? await (await import('./xlsx')).xlsx(view.names, rows, view.kinds)
        : new Blob([csv({ columns: view.names, rows })], { type: 'text/csv;charset=utf-8' })
      save(file, `${name || 'table'}.${excel ? 'xlsx' : 'csv'}`)
      return view.count > most ? fill(w.savedFirst, { n: most, all: view.count }) : ''
    }, w.notSaved)
  return { said, busy, copy, onCopy, download, stop: () => control.current?.abort() }
}
