import { type KeyboardEvent, type PointerEvent, useRef, useState } from 'react'
import { type Box, boxOf, type Place, step } from './gridMath'

const longTap = 450
const still = 10 // pixels that a finger may move in a tap

/** The cells that are selected: by pointer, by keys, by a tap; after a long tap the next tap selects up to there. */
export function useSelection(
  rows: number,
  columns: number,
  indexes: number,
  page: () => number,
  reveal: (p: Place) => void,
) {
  const [anchor, setAnchor] = useState<Place | null>(null)
  const [focus, setFocus] = useState<Place | null>(null)
  const [ranging, setRanging] = useState(false)
  const dragging = useRef(false)
  const tap = useRef<{ x: number; y: number; place: Place; timer: ReturnType<typeof setTimeout> } | null>(null)
  const box: Box | null = anchor && focus ? boxOf(anchor, focus) : null
  const clear = () => {
    setAnchor(null)
    setFocus(null)
    setRanging(false)
  }
  const one = (p: Place) => {
    setAnchor(p)
    setFocus(p)
  }
  const place = (e: PointerEvent): Place | null => {
    const data = (e.target as HTMLElement).closest<HTMLElement>('[data-row]')?.dataset
    return data ? { row: Number(data.row), column: Number(data.column) } : null
  }
  const noTap = () => {
    clearTimeout(tap.current?.timer)
    tap.current = null
  }
  const onPointerDown = (e: PointerEvent<HTMLElement>) => {
    const p = place(e)
    if (!p || e.button !== 0) return
    if (e.pointerType === 'touch') {
      noTap()
      const timer = setTimeout(() => {
        tap.current = null
        one(p)
        setRanging(true)
      }, longTap)
      tap.current = { x: e.clientX, y: e.clientY, place: p, timer }
      return
    }
    dragging.current = true
    setRanging(false)
    if (!e.shiftKey || !anchor) setAnchor(p)
    setFocus(p)
    e.currentTarget.focus({ preventScroll: true })
    e.preventDefault()
  }
  const onPointerMove = (e: PointerEvent) => {
    const t = tap.current
    if (t && Math.hypot(e.clientX - t.x, e.clientY - t.y) > still) noTap()
    const p = dragging.current ? place(e) : null
    if (p) setFocus(p)
  }
  const onPointerUp = () => {
    dragging.current = false
    const t = tap.current
    noTap()
    if (!t) return
    if (ranging && anchor) {
      setFocus(t.place)
      setRanging(false)
    } else one(t.place)
  }
  const onKeyDown = (e: KeyboardEvent) => {
    if (e.nativeEvent.isComposing || e.keyCode === 229 || e.target !== e.currentTarget || rows < 1) return
    if ((e.ctrlKey || e.metaKey) && e.code === 'KeyA') {
      setAnchor({ row: 0, column: 0 })
      setFocus({ row: rows - 1, column: columns - 1 })
    } else if (e.key === 'Escape' && box) {
      clear()
      e.stopPropagation()
    } else {
      const from = focus ?? { row: 0, column: indexes }
      const to = step(e, from, rows - 1, columns - 1, page())
      if (!to) return
      const next = focus ? to : from
      setFocus(next)
      if (!e.shiftKey || !anchor) setAnchor(next)
      reveal(next)
    }
    e.preventDefault()
  }
  return {
    box,
    focus,
    ranging,
    clear,
    handlers: {
      onPointerDown,
      onPointerMove,
      onPointerUp,
      onPointerCancel: noTap,
      onPointerLeave: noTap,
      onKeyDown,
      onContextMenu: (e: { preventDefault: () => void }) => ranging && e.preventDefault(),
    },
  }
}
