import { MoreHorizontal } from 'lucide-react'
import { type RefObject, useEffect, useRef, useState } from 'react'
import { Button, Menu, MenuItem, MenuTrigger, Popover } from 'react-aria-components'
import type { Export, Kind } from '../frame/protocol'
import css from './chart.module.css'
import { type Exporter, FrameView } from './FrameView'
import { save, useSaid } from './parts'
import parts from './parts.module.css'
import { slots } from './slots'
import type { Theme } from './types'
import { fill, plain, words } from './words'

// What charts have in their place in the page and in the full screen alike.

export interface Chart {
  kind: Kind
  spec: unknown
  theme: Theme
}

export interface Saving {
  /** Asks the frame, which FrameView puts here. */
  asks: RefObject<Exporter | null>
  exported: (what: Export, bytes: ArrayBuffer) => void
  copy: () => void
  said: string
}

/** How a chart with this number is saved and copied. */
export function useSaving(number: number): Saving {
  const asks = useRef<Exporter>(null)
  const copying = useRef<((png: Blob) => void) | null>(null)
  const [said, say] = useSaid()
  /** The clipboard is asked for in the click; the frame gives the picture later. */
  const copy = () => {
    const png = new Promise<Blob>((done, fail) => {
      copying.current = done
      setTimeout(() => fail(new Error('no picture')), 10_000)
    })
    asks.current?.('png')
    say(
      navigator.clipboard?.write
        ? navigator.clipboard.write([new ClipboardItem({ 'image/png': png })])
        : Promise.reject(new Error('no clipboard')),
    )
  }
  const exported = (what: Export, bytes: ArrayBuffer) => {
    const type = { png: 'image/png', svg: 'image/svg+xml', csv: 'text/csv' }[what]
    const waits = copying.current
    if (what === 'png' && waits) {
      copying.current = null
      waits(new Blob([bytes], { type }))
      return
    }
    save(new Blob([bytes], { type }), `chart-${number}.${what}`)
  }
  return { asks, exported, copy, said }
}

export function ChartMenu({ saving: { asks, copy } }: { saving: Saving }) {
  const w = words()
  return (
    <MenuTrigger>
      <Button className={parts.menuButton ?? ''} aria-label={w.chartOptions}>
        <MoreHorizontal size={16} aria-hidden />
      </Button>
      <Popover className={parts.popover ?? ''} placement="bottom start">
        <Menu className={parts.menu ?? ''} onAction={(k) => (k === 'copy' ? copy() : asks.current?.(k as Export))}>
          <MenuItem id="png" className={parts.item ?? ''}>
            {w.png2}
          </MenuItem>
          <MenuItem id="copy" className={parts.item ?? ''}>
            {w.copyImage}
          </MenuItem>
          <MenuItem id="svg" className={parts.item ?? ''}>
            {w.svg}
          </MenuItem>
          <MenuItem id="csv" className={parts.item ?? ''}>
            {w.dataCsv}
          </MenuItem>
        </Menu>
      </Popover>
    </MenuTrigger>
  )
}

interface WholeProps {
  chart: Chart
  label: string
  saving: Saving
  onLeave: () => void
}

/** A chart as large as there is room. Its frame is one of those that may live at a time. */
export function WholeChart({ chart, label, saving, onLeave }: WholeProps) {
  const [failed, setFailed] = useState<string | null>(null)
  const [id] = useState(() => Symbol('whole chart'))
  useEffect(() => {
    // It is what is looked at: where it would give way, the next one does.
    const take = () => slots.take(id, take)
    take()
    return () => slots.leave(id)
  }, [id])
  if (failed !== null) return <p className={css.note}>{fill(words().chartFailed, { why: plain(failed, 300) })}</p>
  return (
    <FrameView
      kind={chart.kind}
      data={chart.spec}
      theme={chart.theme}
      title={label}
      height={0}
      fill
      asks={saving.asks}
      onExported={saving.exported}
      onFailed={setFailed}
      onLeave={onLeave}
    />
  )
}
