import { type ReactNode, useEffect, useRef, useState } from 'react'
import { createPortal } from 'react-dom'
import { type Kind, weigh } from '../frame/protocol'
import { type Exporter, FrameView } from '../output/FrameView'
import { type Picture, picture } from '../output/image'
import { useWords } from '../words'
import { usePending } from './pending'
import css from './print.module.css'

const patience = 20_000
const most = { bytes: 20_000_000, points: 1_000_000 }

// Frames take memory, and browsers draw only those that are in the window: one at a time is, unseen.
let before = Promise.resolve()

function inTurn(): { mine: Promise<void>; leave: () => void } {
  const mine = before
  let leave = () => {}
  const over = new Promise<void>((done) => {
    leave = done
  })
  before = mine.then(() => over)
  return { mine, leave }
}

interface Props {
  kind: Kind
  spec: unknown
  show: (picture: Picture) => ReactNode
}

/** A chart as a picture, which its frame makes. */
export function PrintChart({ kind, spec, show }: Props) {
  const w = useWords()
  const asks = useRef<Exporter>(null)
  const [drawing, setDrawing] = useState(false)
  const [made, setMade] = useState<Picture | null>(null)
  const [failed, setFailed] = useState(() => {
    const weight = weigh(spec)
    return weight.deep || weight.bytes > most.bytes || weight.points > most.points
  })
  const over = failed || !!made
  usePending(!over)
  useEffect(() => {
    if (over) return
    const { mine, leave } = inTurn()
    let late: ReturnType<typeof setTimeout>
    let left = false
    void mine.then(() => {
      if (left) return
      setDrawing(true)
      late = setTimeout(() => setFailed(true), patience)
    })
    return () => {
      left = true
      clearTimeout(late)
      setDrawing(false)
      leave()
    }
  }, [over])
  if (made) return show(made)
  if (failed) return <p className={css.more}>{w.print.noChart}</p>
  if (!drawing) return null
  return createPortal(
    <div className={css.maker} aria-hidden inert>
      <FrameView
        kind={kind}
        data={spec}
        theme="light"
        title={w.print.figure}
        height={420}
        asks={asks}
        onHeight={() => asks.current?.('png')}
        onExported={(what, bytes) => {
          const found = what === 'png' ? picture(new Uint8Array(bytes)) : null
          if (found && !('problem' in found)) setMade(found)
          else setFailed(true)
        }}
        onFailed={() => setFailed(true)}
      />
    </div>,
    document.body,
  )
}
