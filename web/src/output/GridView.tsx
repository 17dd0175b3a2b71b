// biome-ignore-all lint/a11y/useSemanticElements: a table element cannot be virtual in both directions
// biome-ignore-all lint/a11y/useFocusableInteractive: the grid has the focus and names the active cell
// biome-ignore-all lint/a11y/useAriaPropsSupportedByRole: a gridcell and a rowheader can be selected
import { type ReactNode, useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { modKey } from '../parts/keys'
import { edgesOf, useColumns, useSeen } from './columns'
import { GridHead } from './GridHead'
import { GridTools } from './GridTools'
import css from './grid.module.css'
import { across, headHeight, inside, lines, type Place, rowHeight, tall, toLine } from './gridMath'
import { useOut } from './gridOut'
import { setGrouping, useGrouping } from './grouping'
import { missing } from './table'
import { useSelection } from './useSelection'
import type { View } from './view'
import { fill, number, words } from './words'

interface Props {
  view: View
  /** What is to be said of the table as a whole. */
  note?: ReactNode
  name?: string
  label?: string
  full?: boolean
  onFull?: () => void
  onClose?: () => void
}

/** The cells that are in sight, with a line of tools above and of facts below. */
export function GridView({ view, note, name = '', label = words().table, full = false, onFull, onClose }: Props) {
  const w = words()
  const own = useId()
  const { names, indexes, kinds } = view
  const scroller = useRef<HTMLDivElement>(null)
  const [seen, setSeen] = useState({ top: 0, left: 0, height: 400, width: 800 })
  const [profiled, setProfiled] = useState(false)
  const grouping = useGrouping()
  const columns = useColumns(view, profiled, grouping)
  const { widths } = columns
  const { lefts, total } = useMemo(() => edgesOf(widths), [widths])
  const fixed = Math.min(lefts[indexes] ?? 0, 240)
  const { gap } = view
  const count = view.count + (gap !== null ? 1 : 0)
  const room = Math.max(rowHeight, seen.height - headHeight(profiled))
  const sight = across(lefts, widths, indexes, seen.left + fixed, seen.width - fixed)
  const here = [...Array.from({ length: indexes }, (_, i) => i), ...sight]
  const at = lines(count, seen.top, room, here.length)
  useSeen(columns, at.first, at.last)

  useEffect(() => {
    const el = scroller.current
    if (!el) return
    let frame = 0
    const look = () => {
      cancelAnimationFrame(frame)
      frame = requestAnimationFrame(() =>
        setSeen({ top: el.scrollTop, left: el.scrollLeft, height: el.clientHeight, width: el.clientWidth }),
      )
    }
    look()
    const sized = new ResizeObserver(look)
    sized.observe(el)
    el.addEventListener('scroll', look, { passive: true })
    return () => {
      cancelAnimationFrame(frame)
      sized.disconnect()
      el.removeEventListener('scroll', look)
    }
  }, [])
  const beyond = (sight.at(-1) ?? 0) >= names.length - 1 && view.cutColumns > 0 && seen.left > 0
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is in sight is asked for when it changes
  useEffect(() => view.see(at.first, at.last, beyond), [at.first, at.last, beyond, view.count, view.trouble === null])
  // Rows in another order begin at the top.
  const order = `${view.sort?.column} ${view.sort?.down} ${view.wanted} ${view.asking}`
  // biome-ignore lint/correctness/useExhaustiveDependencies: on another order only
  useLayoutEffect(() => {
    if (scroller.current) scroller.current.scrollTop = 0
  }, [order])

  /** Which row a line of the grid is; null is the line that says what is left out. */
  const rowAt = (line: number): number | null => (gap === null || line < gap ? line : line === gap ? null : line - 1)
  const reveal = (p: Place) => {
    const el = scroller.current
    if (!el) return
    el.scrollTop = toLine(count, gap !== null && p.row >= gap ? p.row + 1 : p.row, el.scrollTop, room)
    const [left, wide] = [lefts[p.column] ?? 0, widths[p.column] ?? 0]
    if (p.column < indexes) return
    if (left - fixed < el.scrollLeft) el.scrollLeft = left - fixed
    else if (left + wide > el.scrollLeft + el.clientWidth) el.scrollLeft = left + wide - el.clientWidth
  }
  const page = () => Math.max(1, Math.floor(room / rowHeight) - 1)
  const chosen = useSelection(view.count, names.length, indexes, page, reveal)
  const out = useOut(view, chosen.box)
  const { box, focus } = chosen
  const clickHead = (column: number) => {
    if (view.fixed) return
    const s = view.sort
    view.setSort(s?.column !== column ? { column, down: false } : s.down ? null : { column, down: true })
    chosen.clear()
  }
  const said = out.said || (chosen.ranging ? w.tapOther : '')
  const height = tall(count) + headHeight(profiled)
  const partly = gap === null && view.known < view.total.rows
  return (
    <section className={css.table} data-full={full || undefined} aria-label={label}>
      <GridTools
        view={view}
        said={said}
        busy={out.busy}
        grouping={columns.hasLarge ? grouping : undefined}
        onGrouping={() => setGrouping(!grouping)}
        profiled={profiled}
        onProfile={() => setProfiled(!profiled)}
        onCopy={() => void out.copy()}
        onSave={(excel) => void out.download(excel, name)}
        onStop={out.stop}
        onClear={chosen.clear}
        onFull={onFull}
        onClose={onClose}
      />
      <div
        ref={scroller}
        className={css.scroller}
        role="grid"
        aria-label={label}
        aria-rowcount={view.total.rows + 1}
        aria-colcount={names.length}
        aria-busy={view.asking}
        data-asking={view.asking || undefined}
        aria-multiselectable
        aria-keyshortcuts={`${modKey}+A ${modKey}+C`}
        aria-activedescendant={focus ? `${own}${focus.row}-${focus.column}` : undefined}
        tabIndex={0}
        onCopy={out.onCopy}
        {...chosen.handlers}
      >
        <div className={css.room} style={{ width: total, height }}>
          <div className={css.head} role="row" aria-rowindex={1} style={{ height: headHeight(profiled), width: total }}>
            {here.map((c) => (
              <GridHead
                key={c}
                view={view}
                columns={columns}
                column={c}
                profiled={profiled}
                style={side(c, indexes, lefts, widths)}
                onSort={() => clickHead(c)}
              />
            ))}
          </div>
          {Array.from({ length: Math.max(0, at.last - at.first + 1) }, (_, i) => {
            const line = at.first + i
            const row = rowAt(line)
            const top = at.top + i * rowHeight + headHeight(profiled)
            if (row === null) {
              return (
                <div key="gap" className={css.row} role="row" style={{ top, width: total }}>
                  <span className={css.gap} role="gridcell">
                    {fill(w.rowsNotHere, { n: view.total.rows - view.known })}
                  </span>
                </div>
              )
            }
            const values = view.row(row)
            const above = indexes > 1 && !view.sort ? view.row(row - 1) : undefined
            return (
              <div
                key={line}
                className={css.row}
                role="row"
                aria-rowindex={line + 2}
                aria-busy={!values || undefined}
                style={{ top, width: total }}
              >
                {here.map((c) => {
                  const value = values?.[c]
                  const text = value == null ? '' : columns.text(c, value)
                  return (
                    <div
                      key={c}
                      id={focus?.row === row && focus.column === c ? `${own}${row}-${c}` : undefined}
                      role={c < indexes ? 'rowheader' : 'gridcell'}
                      aria-colindex={c + 1}
                      aria-selected={box ? inside(box, row, c) : undefined}
                      className={css.cell}
                      data-row={row}
                      data-column={c}
                      data-index={c < indexes || undefined}
                      data-kind={kinds[c]}
                      title={value && kinds[c] === 'number' && text !== value ? value : undefined}
                      data-away={value === undefined || undefined}
                      data-missing={(value !== undefined && missing(value)) || undefined}
                      style={side(c, indexes, lefts, widths)}
                    >
                      {value === undefined || (c < indexes - 1 && value === above?.[c])
                        ? ''
                        : value === null
                          ? w.nothing
                          : text}
                    </div>
                  )
                })}
              </div>
            )
          })}
        </div>
      </div>
      <div className={css.foot}>
        {sizeOf(view.total)}
        {view.wanted && ` · ${fill(w.ofRows, { n: view.count, all: number(view.known) })}`}
        {partly && ` · ${fill(w.firstRows, { n: view.known })}`}
        {view.cutColumns > 0 && ` · ${fill(w.moreColumns, { n: view.cutColumns })}`}
        {note}
      </div>
    </section>
  )
}

function sizeOf({ rows, columns }: View['total']): string {
  const w = words()
  if (rows === 1 && columns === 1) return w.oneCell
  if (columns === 1) return fill(w.rowsOneColumn, { rows })
  return rows === 1 ? fill(w.oneRowColumns, { columns }) : fill(w.rowsColumns, { rows, columns })
}

function side(c: number, indexes: number, lefts: number[], widths: number[]) {
  // Index columns stay in sight; the sum of their widths is bounded so that something else is.
  return c < indexes
    ? { position: 'sticky' as const, left: Math.min(lefts[c] ?? 0, 240), width: widths[c] }
    : { position: 'absolute' as const, left: lefts[c], width: widths[c] }
}
