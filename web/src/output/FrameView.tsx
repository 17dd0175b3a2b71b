import { type RefObject, useEffect, useEffectEvent, useRef, useState } from 'react'
import { base } from '../api/base'
import { type Export, type In, type Kind, type Move, readOut } from '../frame/protocol'
import css from './chart.module.css'
import { Ask, linkAddress } from './Link'
import type { Theme } from './types'
import { words } from './words'

const mostLeft = 3

export type Exporter = (kind: Export) => void

interface Props {
  kind: Kind
  data: unknown
  /** What is drawn, in the place of data, as it is when the frame is there. */
  current?: () => unknown
  theme: Theme
  title: string
  height: number
  fill?: boolean
  asks?: RefObject<Exporter | null>
  onHeight?: (height: number) => void
  onExported?: (kind: Export, bytes: ArrayBuffer) => void
  onFailed?: (why: string) => void
  onRefused?: () => void
  /** Tells the frame of widgets, which FrameView puts here. */
  news?: RefObject<((news: NonNullable<In['widgets']>) => void) | null>
  onMove?: (move: Move) => void
  /** Esc was pressed in the frame, whose keys the page does not hear. */
  onLeave?: () => void
}

const fresh = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, '0')).join('')

/** The isolated frame. What comes out of it is a height, bytes to save, an address to ask about, why it failed, or that it is left. */
export function FrameView(props: Props) {
  const { kind, data, theme, title, height, fill = false, asks } = props
  const frame = useRef<HTMLIFrameElement>(null)
  const [nonce] = useState(fresh)
  const [link, setLink] = useState<URL | null>(null)
  const heard = useEffectEvent((event: MessageEvent) => {
    if (!frame.current || event.source !== frame.current.contentWindow) return
    const out = readOut(event.data, nonce)
    if (!out) return
    if (out.height !== undefined) props.onHeight?.(out.height)
    if (out.exported) props.onExported?.(out.exported.kind, out.exported.bytes)
    if (out.failed !== undefined) props.onFailed?.(out.failed)
    if (out.refused) props.onRefused?.()
    if (out.leave) props.onLeave?.()
    if (out.move) props.onMove?.(out.move)
    if (out.link !== undefined) setLink(linkAddress(out.link))
  })
  useEffect(() => {
    const listen = (e: MessageEvent) => heard(e)
    window.addEventListener('message', listen)
    return () => window.removeEventListener('message', listen)
  }, [])
  const send = (message: Omit<In, 'cove'>) => {
    try {
      frame.current?.contentWindow?.postMessage({ cove: nonce, ...message }, '*')
    } catch (e) {
      props.onFailed?.(String(e).slice(0, 200))
    }
  }
  useEffect(() => {
    if (!asks) return
    asks.current = (kind) => send({ export: kind })
    return () => {
      asks.current = null
    }
  })
  useEffect(() => {
    const { news } = props
    if (!news) return
    news.current = (widgets) => send({ widgets })
    return () => {
      news.current = null
    }
  })
  // What code made may not lead the frame elsewhere, and be drawn there: under the policy for scripts, for one.
  const [gone, setGone] = useState(0)
  const shown = `${theme} ${gone}`
  const loaded = useRef('')
  const draw = () => {
    if (kind === 'widgets' && loaded.current === shown) {
      if (gone < mostLeft) setGone(gone + 1)
      else props.onFailed?.(words().frameLeft)
      return
    }
    loaded.current = shown
    send({ render: { kind, data: props.current ? props.current() : data, theme, locale, fill } })
  }
  const locale = document.documentElement.lang || 'en'
  const address = new URL(kind === 'scripts' ? 'frame?scripts=1' : 'frame', base).href
  return (
    <>
      <iframe
        key={shown}
        ref={frame}
        className={css.frame}
        sandbox="allow-scripts"
        referrerPolicy="no-referrer"
        src={address}
        title={title}
        style={{ height: fill ? '100%' : height }}
        onLoad={draw}
      />
      {link && <Ask url={link} onClose={() => setLink(null)} />}
    </>
  )
}
