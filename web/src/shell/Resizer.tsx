import { useRef } from 'react'
import { isComposing } from '../parts/keys'
import css from './shell.module.css'

export const clamp = (n: number, least: number, most: number) => Math.round(Math.max(least, Math.min(most, n)))

/** The edge of a column: dragged, or moved by arrows, Home and End. A double click takes the usual width. */
export function Resizer({
  label,
  value,
  least,
  most,
  usual,
  side,
  onChange,
}: {
  label: string
  value: number
  least: number
  most: number
  usual: number
  /** On which side of the edge the column is. */
  side: 'left' | 'right'
  onChange: (value: number) => void
}) {
  const from = useRef<{ x: number; value: number } | null>(null)
  const sign = side === 'left' ? 1 : -1
  const set = (n: number) => onChange(clamp(n, least, most))
  return (
    // biome-ignore lint/a11y/useSemanticElements: a line that cannot be moved is another thing
    <div
      role="separator"
      tabIndex={0}
      aria-orientation="vertical"
      aria-label={label}
      aria-valuenow={value}
      aria-valuemin={least}
      aria-valuemax={most}
      className={css.resizer}
      data-side={side}
      onDoubleClick={() => set(usual)}
      onPointerDown={(e) => {
        e.preventDefault()
        e.currentTarget.setPointerCapture(e.pointerId)
        from.current = { x: e.clientX, value }
      }}
      onPointerMove={(e) => from.current && set(from.current.value + sign * (e.clientX - from.current.x))}
      onPointerUp={() => {
        from.current = null
      }}
      onPointerCancel={() => {
        from.current = null
      }}
      onKeyDown={(e) => {
        if (isComposing(e) || e.altKey || e.ctrlKey || e.metaKey) return
        const step = e.shiftKey ? 64 : 16
        if (e.key === 'ArrowLeft') set(value - sign * step)
        else if (e.key === 'ArrowRight') set(value + sign * step)
        else if (e.key === 'Home') set(least)
        else if (e.key === 'End') set(most)
        else if (e.key === 'Enter') set(usual)
        else return
        e.preventDefault()
      }}
    />
  )
}
