import { Maximize2, MoreHorizontal, X } from 'lucide-react'
import { useContext, useEffect, useMemo, useRef, useState } from 'react'
import { Button, Dialog, Menu, MenuItem, MenuTrigger, Modal, ModalOverlay, Popover } from 'react-aria-components'
import { type Export, type Kind, weigh } from '../frame/protocol'
import { StepContext } from './Album'
import css from './chart.module.css'
import { pictureOf } from './Figure'
import { type Exporter, FrameView } from './FrameView'
import { save, Tool, useBlobUrl, useSaid } from './parts'
import parts from './parts.module.css'
import { slots } from './slots'
import type { Mime, Theme } from './types'
import { fill, number, plain, size, words } from './words'

const kinds: [RegExp, Kind][] = [
  [/^application\/vnd\.plotly\.v1\+json$/, 'plotly'],
  [/^application\/vnd\.vegalite\.v[56](\.\d+)*[+.]json$/, 'vega-lite'],
  [/^application\/vnd\.vega\.v[56](\.\d+)*[+.]json$/, 'vega'],
]

/** The chart of a bundle, if it has one. */
export function chartOf(data: Mime): { kind: Kind; spec: unknown } | null {
  for (const type of Object.keys(data)) {
    const kind = kinds.find(([pattern]) => pattern.test(type))?.[1]
    if (kind && data[type] !== null && typeof data[type] === 'object') return { kind, spec: data[type] }
  }
  return null
}

interface Props {
  kind: Kind
  spec: unknown
  data: Mime
  number: number
  theme: Theme
}

const large = { bytes: 20_000_000, points: 1_000_000 }

export function ChartFrame({ kind, spec, data, number: n, theme }: Props) {
  const w = words()
  const weight = useMemo(() => weigh(spec), [spec])
  const tooLarge = weight.bytes > large.bytes || weight.points > large.points
  const [agreed, setAgreed] = useState(false)
  const [live, setLive] = useState(false)
  const [drawn, setDrawn] = useState(false)
  const [height, setHeight] = useState(() => guess(kind, spec))
  const [failed, setFailed] = useState<string | null>(null)
  const [full, setFull] = useState(false)
  const box = useRef<HTMLDivElement>(null)
  const asks = useRef<Exporter>(null)
  const [id] = useState(() => Symbol('chart'))
  const still = useMemo(() => pictureOf(data), [data])
  const picture = still && !('problem' in still) ? still : null
  const url = useBlobUrl(picture?.bytes ?? null, picture?.type ?? '')
  const may = (!tooLarge || agreed) && !weight.deep

  const take = () => {
    setLive(true)
    slots.take(id, () => {
      setLive(false)
      setDrawn(false)
    })
  }
  // biome-ignore lint/correctness/useExhaustiveDependencies: take has no state of its own
  useEffect(() => {
    if (!may || !box.current) return
    const seen = new IntersectionObserver(([entry]) => entry?.isIntersecting && take(), { rootMargin: '300px 0px' })
    seen.observe(box.current)
    return () => {
      seen.disconnect()
      slots.leave(id)
    }
  }, [may, id])
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
    save(new Blob([bytes], { type }), `chart-${n}.${what}`)
  }
  const step = useContext(StepContext)
  const label = step > 0 ? fill(w.figureOfStep, { n, step }) : `${w.chart} ${number(n)}`
  if (weight.deep) return <p className={css.note}>{fill(w.chartFailed, { why: w.imageBroken })}</p>
  if (!may) {
    return (
      <div className={css.ask}>
        <p>{fill(w.chartLarge, { size: `${size(weight.bytes)}` })}</p>
        {url && <img className={css.still} src={url} alt={label} />}
        <Button className={css.button ?? ''} onPress={() => setAgreed(true)}>
          {w.draw}
        </Button>
      </div>
    )
  }
  return (
    <figure className={css.figure} aria-label={label}>
      <div ref={box} className={css.card} style={{ minHeight: live && !failed ? height : undefined }}>
        {url && !(live && drawn) && <img className={css.still} src={url} alt={label} />}
        {live && !failed && (
          <div className={drawn || !url ? undefined : css.behind}>
            <FrameView
              kind={kind}
              data={spec}
              theme={theme}
              title={label}
              height={height}
              asks={asks}
              onHeight={(h) => {
                setHeight(h)
                setDrawn(true)
              }}
              onExported={exported}
              onFailed={setFailed}
            />
          </div>
        )}
        {!live && !url && (
          <div className={css.empty} style={{ height }}>
            <Button className={css.button ?? ''} onPress={take}>
              {w.draw}
            </Button>
          </div>
        )}
      </div>
      {failed !== null && <p className={css.note}>{fill(w.chartFailed, { why: plain(failed, 300) })}</p>}
      <div className={css.tools}>
        <Tool icon={Maximize2} label={w.fullScreen} onPress={() => setFull(true)} />
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
        <span role="status" className={css.said}>
          {said}
        </span>
      </div>
      {full && (
        <ModalOverlay className={css.overlay ?? ''} isOpen isDismissable onOpenChange={setFull}>
          <Modal className={css.modal ?? ''}>
            <Dialog className={css.dialog ?? ''} aria-label={label}>
              <div className={css.bar}>
                <span>{label}</span>
                <Tool icon={X} label={w.close} onPress={() => setFull(false)} />
              </div>
              <div className={css.whole}>
                <FrameView kind={kind} data={spec} theme={theme} title={label} height={0} fill onExported={exported} />
              </div>
            </Dialog>
          </Modal>
        </ModalOverlay>
      )}
    </figure>
  )
}

function guess(kind: Kind, spec: unknown): number {
  const of = spec as { height?: unknown; layout?: { height?: unknown } }
  const h = Number(kind === 'plotly' ? of.layout?.height : of.height)
  if (h >= 80 && h <= 2000) return kind === 'plotly' ? h : h + 80
  return kind === 'plotly' ? 420 : 380
}
