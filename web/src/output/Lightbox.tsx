import { ChevronLeft, ChevronRight, Copy, Download, Minus, Plus, Scan, X } from 'lucide-react'
import { useEffect, useEffectEvent, useState } from 'react'
import { Dialog, Modal, ModalOverlay } from 'react-aria-components'
import type { Shown } from './Album'
import { copyPicture, download } from './Figure'
import css from './figure.module.css'
import { Tool, useBlobUrl, useSaid } from './parts'
import { fill, words } from './words'

interface Props {
  figures: readonly Shown[]
  at: number
  onMove: (at: number) => void
  onClose: () => void
}

const steps = [1, 1.5, 2, 3, 4, 6, 8]

export default function Lightbox({ figures, at, onMove, onClose }: Props) {
  const w = words()
  const [zoom, setZoom] = useState(0)
  const [said, say] = useSaid()
  const figure = figures[at]
  const url = useBlobUrl(figure?.picture.bytes ?? null, figure?.picture.type ?? '')
  const move = (by: number) => {
    const next = at + by
    if (next < 0 || next >= figures.length) return
    setZoom(0)
    onMove(next)
  }
  const scale = (by: number) => setZoom((z) => Math.min(steps.length - 1, Math.max(0, z + by)))
  const key = useEffectEvent((e: KeyboardEvent) => {
    if (e.isComposing || e.keyCode === 229 || e.ctrlKey || e.metaKey || e.altKey) return
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
  if (!figure) return null
  const factor = steps[zoom] ?? 1
  return (
    <ModalOverlay className={css.overlay ?? ''} isOpen isDismissable onOpenChange={(open) => !open && onClose()}>
      <Modal className={css.modal ?? ''}>
        <Dialog className={css.dialog ?? ''} aria-label={figure.alt}>
          <div className={css.inside}>
            <div className={css.bar}>
              <span className={css.count}>{fill(w.figureOf, { n: at + 1, all: figures.length })}</span>
              <span role="status" className={css.said}>
                {said}
              </span>
              <Tool icon={Minus} label={w.zoomOut} onPress={() => scale(-1)} />
              <Tool icon={Scan} label={w.actualSize} onPress={() => setZoom(0)} />
              <Tool icon={Plus} label={w.zoomIn} onPress={() => scale(1)} />
              <Tool icon={Download} label={w.download} onPress={() => download(figure.picture, at + 1)} />
              <Tool icon={Copy} label={w.copyImage} onPress={() => say(copyPicture(figure.picture))} />
              <Tool icon={X} label={w.close} onPress={onClose} />
            </div>
            <div className={css.stage}>
              {url && (
                <img
                  src={url}
                  alt={figure.alt}
                  className={css.large}
                  style={{ width: `${factor * 100}%`, height: `${factor * 100}%` }}
                />
              )}
            </div>
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
