import { ChartColumn, ChartNoAxesCombined, Copy, Download, Hash, Maximize2, X } from 'lucide-react'
import { createContext, useContext, useRef } from 'react'
import { Button, Menu, MenuItem, MenuTrigger, Popover } from 'react-aria-components'
import css from './grid.module.css'
import { Tool } from './parts'
import look from './parts.module.css'
import type { View } from './view'
import { words } from './words'

/** Makes a chart of the table that is shown. Null: not of this one, or not here. */
export const OnChart = createContext<(() => void) | null>(null)

interface Props {
  view: View
  said: string
  busy: boolean
  /** Whether large numbers are grouped; undefined: there are none. */
  grouping?: boolean | undefined
  onGrouping: () => void
  profiled: boolean
  onProfile: () => void
  onCopy: () => void
  onSave: (excel: boolean) => void
  onStop: () => void
  onClear: () => void
  onFull?: (() => void) | undefined
  onClose?: (() => void) | undefined
}

export function GridTools({ view, said, busy, grouping, profiled, onProfile, ...on }: Props) {
  const w = words()
  const chart = useContext(OnChart)
  const composing = useRef(false)
  return (
    <div className={css.tools}>
      {view.known > 8 && !view.fixed && (
        <input
          className={css.filter}
          type="search"
          placeholder={w.filter}
          aria-label={w.filter}
          maxLength={200}
          defaultValue={view.filter}
          onCompositionStart={() => {
            composing.current = true
          }}
          onCompositionEnd={(e) => {
            composing.current = false
            view.setFilter(e.currentTarget.value)
            on.onClear()
          }}
          onChange={(e) => {
            // Half of a word that an input method still composes is not what is looked for.
            if (composing.current) return
            view.setFilter(e.target.value)
            on.onClear()
          }}
        />
      )}
      <span role="status" className={css.said}>
        {said || (view.asking ? w.looking : '')}
      </span>
      {busy && <Tool icon={X} label={w.cancel} onPress={on.onStop} />}
      {chart && (
        <Button className={css.chart ?? ''} onPress={chart}>
          <ChartNoAxesCombined size={16} aria-hidden />
          {w.makeChart}
        </Button>
      )}
      {!view.fixed && <Tool icon={ChartColumn} label={w.profile} pressed={profiled} onPress={onProfile} />}
      {grouping !== undefined && <Tool icon={Hash} label={w.grouping} pressed={grouping} onPress={on.onGrouping} />}
      <Tool icon={Copy} label={w.copyCells} onPress={on.onCopy} />
      <MenuTrigger>
        <Button className={look.menuButton ?? ''} aria-label={w.download}>
          <Download size={16} aria-hidden />
        </Button>
        <Popover className={look.popover ?? ''} placement="bottom end">
          <Menu className={look.menu ?? ''} onAction={(k) => on.onSave(k === 'excel')}>
            <MenuItem id="csv" className={look.item ?? ''}>
              {w.csv}
            </MenuItem>
            <MenuItem id="excel" className={look.item ?? ''}>
              {w.xlsx}
            </MenuItem>
          </Menu>
        </Popover>
      </MenuTrigger>
      {on.onFull && <Tool icon={Maximize2} label={w.fullScreen} onPress={on.onFull} />}
      {on.onClose && <Tool icon={X} label={w.close} onPress={on.onClose} />}
    </div>
  )
}
