import { Maximize2 } from 'lucide-react'
import { useContext, useEffect, useMemo, useRef, useState } from 'react'
import { Button } from 'react-aria-components'
import { type Kind, weigh } from '../frame/protocol'
import { AlbumContext, type Shown, StepContext } from './Album'
import { ChartMenu, useSaving } from './ChartView'
import css from './chart.module.css'
import { pictureOf } from './Figure'
import { FrameView } from './FrameView'
import { Tool, useBlobUrl } from './parts'
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
  const box = useRef<HTMLDivElement>(null)
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
  const saving = useSaving(n)
  const step = useContext(StepContext)
  const label = step > 0 ? fill(w.figureOfStep, { n, step }) : `${w.chart} ${number(n)}`
  const album = useContext(AlbumContext)
  const drawable = may && failed === null
  const shown = useMemo<Shown | null>(
    () => (drawable ? { what: { chart: { kind, spec, theme } }, alt: label, number: n, box } : null),
    [drawable, kind, spec, theme, label, n],
  )
  useEffect(() => (shown ? album.add(shown) : undefined), [shown, album])
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
              asks={saving.asks}
              onHeight={(h) => {
                setHeight(h)
                setDrawn(true)
              }}
              onExported={saving.exported}
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
        {shown && <Tool icon={Maximize2} label={w.fullScreen} onPress={() => album.open(shown)} />}
        <ChartMenu saving={saving} />
        <span role="status" className={css.said}>
          {saving.said}
        </span>
      </div>
    </figure>
  )
}

function guess(kind: Kind, spec: unknown): number {
  const of = spec as { height?: unknown; layout?: { height?: unknown } }
  const h = Number(kind === 'plotly' ? of.layout?.height : of.height)
  if (h >= 80 && h <= 2000) return kind === 'plotly' ? h : h + 80
  return kind === 'plotly' ? 420 : 380
}
