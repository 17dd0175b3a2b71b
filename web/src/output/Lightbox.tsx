import { ChevronLeft, ChevronRight, Copy, Download, Minus, Plus, Scan, X } from 'lucide-react'
import { useEffect, useEffectEvent, useRef, useState } from 'react'
import { Dialog, Modal, ModalOverlay } from 'react-aria-components'
import type { Shown } from './Album'
import { ChartMenu, useSaving, WholeChart } from './ChartView'
import { copyPicture, download } from './Figure'
import css from './figure.module.css'
import type { Picture } from './image'
import { Tool, useBlobUrl, useSaid } from './parts'
import { fill, words } from './words'

interface Props {
  figures: readonly Shown[]
  at: number
  onMove: (at: number) => void
  onClose: () => void
}

const steps = [1, 1.5, 2, 3, 4, 6, 8]

/** The full screen: one of the figures, and the ways to the others. */
export default function Lightbox({ figures, at, onMove, onClose }: Props) {
  const w = words()
  const [zoom, setZoom] = useState(0)
  const [said, say] = useSaid()
  const dialog = useRef<HTMLElement>(null)
  const figure = figures[at]
  const picture = figure && 'picture' in figure.what ? figure.what.picture : null
  const chart = figure && 'chart' in figure.what ? figure.what.chart : null
  const number = figure?.number ?? 1
  const saving = useSaving(number)
  const move = (by: number) => {
    const next = at + by
    if (next < 0 || next >= figures.length) return
    setZoom(0)
    onMove(next)
  }
  const scale = (by: number) => setZoom((z) => (picture ? Math.min(steps.length - 1, Math.max(0, z + by)) : 0))
  // Keys that are pressed in a chart are its own: they stay in its frame.
  const key = useEffectEvent((e: KeyboardEvent) => {
    if (e.isComposing || e.keyCode === 229 || e.ctrlKey || e.metaKey || e.altKey) return
    if (e.target instanceof Element && e.target.closest('[role="menu"]')) return
    const acts: Record<string, () => void> = {
      arrowleft: () => move(-1),
      arrowright: () => move(1),
      '+': () => scale(1),
      '=': () => scale(1),
      '-': () => scale(-1),
      '0': () => setZoom(0),
    }
    const act = acts[e.key.toLowerCase()]
    if (!act || (zoom > 0 && e.key.startsWith('Arrow'))) return
    e.preventDefault()
    act()
  })
  useEffect(() => {
    const listen = (e: KeyboardEvent) => key(e)
    document.addEventListener('keydown', listen)
    return () => document.removeEventListener('keydown', listen)
  }, [])
  // The button that had the focus may be one that the next figure has not; Esc is heard inside only.
  // biome-ignore lint/correctness/useExhaustiveDependencies: after each move
  useEffect(() => {
    if (!dialog.current?.contains(document.activeElement)) dialog.current?.focus()
  }, [at])
  if (!figure) return null
  return (
    <ModalOverlay className={css.overlay ?? ''} isOpen isDismissable onOpenChange={(open) => !open && onClose()}>
      <Modal className={css.modal ?? ''}>
        <Dialog ref={dialog} className={css.dialog ?? ''} aria-label={figure.alt}>
          <div className={css.inside} aria-keyshortcuts="ArrowLeft ArrowRight Plus - 0">
            <div className={css.bar}>
              <span className={css.count} aria-live="polite">
                {fill(w.figureOf, { n: at + 1, all: figures.length })}
              </span>
              <span role="status" className={css.said}>
                {said || saving.said}
              </span>
              {picture && (
                <>
                  <Tool icon={Minus} label={w.zoomOut} onPress={() => scale(-1)} />
                  <Tool icon={Scan} label={w.actualSize} onPress={() => setZoom(0)} />
                  <Tool icon={Plus} label={w.zoomIn} onPress={() => scale(1)} />
                  <Tool icon={Download} label={w.download} onPress={() => download(picture, number)} />
                  <Tool icon={Copy} label={w.copyImage} onPress={() => say(copyPicture(picture))} />
                </>
              )}
              {chart && <ChartMenu saving={saving} />}
              <Tool icon={X} label={w.close} onPress={onClose} />
            </div>
            {chart && (
              <div className={css.live}>
                <WholeChart key={at} chart={chart} label={figure.alt} saving={saving} onLeave={onClose} />
              </div>
            )}
            {picture && <Still key={at} picture={picture} alt={figure.alt} factor={steps[zoom] ?? 1} />}
            {figures.length > 1 && (
              <div className={css.arrows}>
                <Tool icon={ChevronLeft} label={w.previous} onPress={() => move(-1)} />
                <Tool icon={ChevronRight} label={w.next} onPress={() => move(1)} />
              </div>
            )}
          </div>
        </Dialog>
      </Modal>
    </ModalOverlay>
  )
}

function Still({ picture, alt, factor }: { picture: Picture; alt: string; factor: number }) {
  const url = useBlobUrl(picture.bytes, picture.type)
  const part = `${factor * 100}%`
  return (
    <div className={css.stage}>
      {url && <img src={url} alt={alt} className={css.large} style={{ width: part, height: part }} />}
    </div>
  )
}
