// biome-ignore-all lint/a11y/useSemanticElements: a table element cannot be virtual in both directions
// biome-ignore-all lint/a11y/useFocusableInteractive: the grid has the focus and names the active cell
import { ArrowDown, ArrowUp } from 'lucide-react'
import { type CSSProperties, type KeyboardEvent, type PointerEvent, useRef } from 'react'
import type { Columns } from './columns'
import { ProfileCell } from './GridProfile'
import css from './grid.module.css'
import type { View } from './view'
import { fill, plain, words } from './words'

interface Props {
  view: View
  columns: Columns
  column: number
  profiled: boolean
  style: CSSProperties
  onSort: () => void
}

/** The name of a column, which sorts by it, and its edge, which is dragged. */
export function GridHead({ view, columns, column: c, profiled, style, onSort }: Props) {
  const w = words()
  const name = view.names[c] ?? ''
  const sorted = view.sort?.column === c ? (view.sort.down ? 'descending' : 'ascending') : 'none'
  const Arrow = sorted === 'descending' ? ArrowDown : ArrowUp
  const onKey = (e: KeyboardEvent) => {
    if (!e.shiftKey || !/^Arrow(Left|Right)$/.test(e.key)) return
    e.preventDefault()
    columns.drag(c, (columns.widths[c] ?? 0) + (e.key === 'ArrowRight' ? 16 : -16))
  }
  return (
    <div
      role="columnheader"
      aria-colindex={c + 1}
      aria-sort={sorted}
      className={css.cell}
      data-index={c < view.indexes || undefined}
      data-kind={view.kinds[c]}
      style={style}
    >
      <button
        type="button"
        className={css.name}
        onClick={onSort}
        onKeyDown={onKey}
        title={name}
        aria-label={name ? undefined : w.indexColumn}
        aria-keyshortcuts="Shift+ArrowLeft Shift+ArrowRight"
      >
        <span className={css.label}>{name}</span>
        {sorted !== 'none' && <Arrow size={12} aria-hidden />}
      </button>
      {profiled && c >= view.indexes && <ProfileCell known={view.profile(c)} kind={view.kinds[c] ?? 'text'} />}
      <Edge columns={columns} column={c} label={fill(w.columnWidth, { name: plain(name, 100) || w.indexColumn })} />
    </div>
  )
}

function Edge({ columns, column, label }: { columns: Columns; column: number; label: string }) {
  const from = useRef<{ x: number; width: number } | null>(null)
  const onPointerDown = (e: PointerEvent<HTMLElement>) => {
    if (e.button !== 0) return
    e.preventDefault()
    e.currentTarget.setPointerCapture(e.pointerId)
    from.current = { x: e.clientX, width: columns.widths[column] ?? 0 }
  }
  const onPointerMove = (e: PointerEvent) => {
    if (from.current) columns.drag(column, from.current.width + e.clientX - from.current.x)
  }
  const end = () => {
    from.current = null
  }
  return (
    <div
      role="separator"
      aria-orientation="vertical"
      aria-label={label}
      className={css.edge}
      onPointerDown={onPointerDown}
      onPointerMove={onPointerMove}
      onPointerUp={end}
      onPointerCancel={end}
      onDoubleClick={() => columns.fit(column)}
    />
  )
}
