import { Copy, Download, Maximize2 } from 'lucide-react'
import { useContext, useEffect, useMemo, useRef } from 'react'
import { AlbumContext, type Shown, StepContext } from './Album'
import css from './figure.module.css'
import { decode, type Picture, type Problem, picture, svg } from './image'
import { save, Tool, useBlobUrl, useSaid } from './parts'
import type { Mime } from './types'
import { fill, plain, words } from './words'

const raster = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'] as const

export function pictureOf(data: Mime): Picture | Problem | null {
  for (const type of raster) {
    if (data[type] === undefined) continue
    const bytes = decode(data[type])
    return bytes instanceof Uint8Array ? picture(bytes) : bytes
  }
  return data['image/svg+xml'] === undefined ? null : svg(data['image/svg+xml'])
}

/** A size that the code asked for, in CSS pixels. */
function asked(metadata: Mime): { width?: number; height?: number } {
  const of = raster.map((t) => metadata[t]).find((m) => m !== null && typeof m === 'object') as Mime | undefined
  const good = (v: unknown) => (typeof v === 'number' && v >= 1 && v <= 4000 ? v : undefined)
  return { width: good(of?.width ?? metadata.width), height: good(of?.height ?? metadata.height) }
}

/** What the code said that the picture shows. */
function described(data: Mime, metadata: Mime): string {
  const of = [...raster, 'image/svg+xml'].map((t) => metadata[t]).find((m) => m !== null && typeof m === 'object')
  const said = (of as Mime | undefined)?.alt ?? metadata.alt ?? data['text/alt']
  return typeof said === 'string' ? plain(said.trim(), 500) : ''
}

interface Props {
  number: number
  data: Mime
  metadata: Mime
}

export function Figure({ number, data, metadata }: Props) {
  const w = words()
  const found = useMemo(() => pictureOf(data), [data])
  const album = useContext(AlbumContext)
  const good = found && !('problem' in found) ? found : null
  const url = useBlobUrl(good?.bytes ?? null, good?.type ?? '')
  const [said, say] = useSaid()
  const step = useContext(StepContext)
  const box = useRef<HTMLElement>(null)
  const alt =
    described(data, metadata) || (step > 0 ? fill(w.figureOfStep, { n: number, step }) : fill(w.figure, { n: number }))
  const shown = useMemo<Shown | null>(() => good && { what: { picture: good }, alt, number, box }, [good, alt, number])
  useEffect(() => (shown ? album.add(shown) : undefined), [shown, album])
  const open = () => shown && album.open(shown)
  if (!good) {
    const problem = found as Problem | null
    return (
      <p className={css.note}>
        {problem?.problem === 'large' ? fill(w.imageTooLarge, { size: problem.detail }) : w.imageBroken}
      </p>
    )
  }
  const size = asked(metadata)
  const width = size.width ?? (size.height && good.height ? (good.width * size.height) / good.height : good.width)
  const ratio = good.width && good.height ? `${good.width} / ${good.height}` : undefined
  return (
    <figure ref={box} className={css.figure}>
      <button
        type="button"
        className={css.card}
        onClick={open}
        title={w.fullScreen}
        style={{ width: width || undefined, aspectRatio: ratio }}
      >
        {url && (
          <img
            src={url}
            alt={alt}
            decoding="async"
            draggable={false}
            onLoad={(e) => e.currentTarget.setAttribute('data-drawn', '')}
          />
        )}
      </button>
      <div className={css.tools}>
        <Tool icon={Maximize2} label={w.fullScreen} onPress={open} />
        <Tool icon={Download} label={w.download} onPress={() => download(good, number)} />
        <Tool icon={Copy} label={said || w.copyImage} onPress={() => say(copyPicture(good))} />
        <span role="status" className={css.said}>
          {said}
        </span>
      </div>
    </figure>
  )
}

export function download(p: Picture, number: number) {
  const ending = p.type === 'image/svg+xml' ? 'svg' : p.type.slice(6)
  save(new Blob([p.bytes], { type: p.type }), `figure-${number}.${ending}`)
}

/** Clipboards take PNG only. */
export async function copyPicture(p: Picture) {
  const blob = new Blob([p.bytes], { type: p.type })
  const png = p.type === 'image/png' ? Promise.resolve(blob) : toPng(blob, p)
  await navigator.clipboard.write([new ClipboardItem({ 'image/png': png })])
}

async function toPng(blob: Blob, p: Picture): Promise<Blob> {
  const url = URL.createObjectURL(blob)
  try {
    const img = new Image()
    img.src = url
    await img.decode()
    const canvas = document.createElement('canvas')
    const scale = p.type === 'image/svg+xml' ? 2 : 1
    canvas.width = (p.width || img.naturalWidth) * scale
    canvas.height = (p.height || img.naturalHeight) * scale
    const context = canvas.getContext('2d')
    if (!context) throw new Error('no canvas')
    context.fillStyle = '#ffffff'
    context.fillRect(0, 0, canvas.width, canvas.height)
    context.drawImage(img, 0, 0, canvas.width, canvas.height)
    return await new Promise((done, fail) => canvas.toBlob((b) => (b ? done(b) : fail(new Error('no image')))))
  } finally {
    URL.revokeObjectURL(url)
  }
}
