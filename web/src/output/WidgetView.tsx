import { useContext, useEffect, useRef, useState, useSyncExternalStore } from 'react'
import { Button } from 'react-aria-components'
import type { In, Move } from '../frame/protocol'
import type { Shown } from '../frame/widgetState'
import css from './chart.module.css'
import { FrameView } from './FrameView'
import { Outputs } from './Outputs'
import { slots } from './slots'
import type { OutputEvent, Theme } from './types'
import { statesFor, ToldContext, WidgetContext, type WidgetPlace } from './widgets'
import { plain, words } from './words'

const never = () => () => {}

/** What a person is told of a widget that does not move, or null. */
function noteOf(place: WidgetPlace | null, presence: string): string | null {
  const w = words()
  if (!place) return w.widgetStill
  if (place.session === 'gone') return w.widgetEnded
  if (place.session === 'paused') return w.widgetPaused
  if (presence === 'gone') return w.widgetGone
  return place.mayMove ? null : w.widgetNotYours
}

/** A widget of code, in a frame: its states come from the interpreter, and what a person does goes there. */
export function WidgetView({ id, text, theme }: { id: string; text: string; theme: Theme }) {
  const w = words()
  const place = useContext(WidgetContext)
  const told = useContext(ToldContext)
  const presence = useSyncExternalStore(place?.subscribe ?? never, () => place?.presence(id) ?? 'gone')
  const [height, setHeight] = useState(80)
  const [failed, setFailed] = useState<string | null>(null)
  const [refused, setRefused] = useState('')
  const [items, setItems] = useState<readonly OutputEvent[]>([])
  const [live, setLive] = useState(false)
  const box = useRef<HTMLDivElement>(null)
  const news = useRef<((news: NonNullable<In['widgets']>) => void) | null>(null)
  const [slot] = useState(() => Symbol('widget'))
  const ask = place?.session === 'ready' ? place.ask : null
  useEffect(() => ask?.(), [ask])
  useEffect(() => {
    if (!box.current) return
    const take = () => {
      setLive(true)
      slots.take(slot, () => setLive(false))
    }
    const seen = new IntersectionObserver(([entry]) => entry?.isIntersecting && take(), { rootMargin: '300px 0px' })
    seen.observe(box.current)
    return () => {
      seen.disconnect()
      slots.leave(slot)
    }
  }, [slot])
  useEffect(() => {
    const states = place?.states ?? told
    return states?.subscribe(({ models, closed, quiet }) => {
      const mine = statesFor(id, told?.models ?? {}, states.models)
      const known = Object.fromEntries(Object.entries(models).filter(([one]) => mine[one]))
      if (Object.keys(known).length + closed.length) news.current?.({ models: known, closed, quiet })
    })
  }, [id, told, place?.states])
  const fixed = place?.session !== 'ready' || presence === 'gone' || !place.mayMove
  // What is drawn first; what comes later is told.
  const current = (): Shown => ({
    view: id,
    models: statesFor(id, told?.models ?? {}, place?.states.models ?? {}),
    fixed,
    texts: {
      strange: w.widgetStrange,
      large: w.widgetLarge,
      gone: w.widgetMissing,
      upload: w.widgetUpload,
      password: w.widgetPassword,
    },
  })
  const move = async (what: Move) => {
    if (!place || fixed) return news.current?.({ done: what.n })
    setRefused('')
    const said = await place.move(what)
    setItems(said.items)
    setRefused(said.failed ?? '')
    news.current?.({ done: what.n, ...(said.models ? { models: said.models } : {}) })
  }
  if (told?.closed.has(id)) return null
  const known = told?.models[id] !== undefined || place?.states.models[id] !== undefined
  const note = noteOf(place, presence)
  return (
    <div className={css.figure}>
      <div ref={box} className={css.card} style={{ minHeight: known && live && failed === null ? height : undefined }}>
        {known && live && failed === null ? (
          <FrameView
            key={fixed ? 'fixed' : 'movable'}
            kind="widgets"
            data={id}
            current={current}
            theme={theme}
            title={w.widget}
            height={height}
            news={news}
            onHeight={setHeight}
            onMove={(m) => void move(m)}
            onFailed={setFailed}
          />
        ) : (
          <pre className={css.plain}>{plain(text, 2000)}</pre>
        )}
      </div>
      {failed !== null && <p className={css.note}>{plain(failed, 300)}</p>}
      {note && (
        <p className={css.note}>
          {note}{' '}
          {place?.session === 'paused' && (
            <Button className={css.button ?? ''} onPress={place.ask}>
              {w.widgetWake}
            </Button>
          )}
        </p>
      )}
      {refused && (
        <p className={css.note} role="alert">
          {plain(refused, 300)}
        </p>
      )}
      {items.length > 0 && <Outputs items={items} theme={theme} />}
    </div>
  )
}
