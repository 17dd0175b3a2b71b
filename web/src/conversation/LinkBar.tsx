import { useEffect, useState } from 'react'
import { useFailingSince } from '../api/connection'
import { retryNow } from '../api/follow'
import { type Live, useLive } from '../events/live'
import type { TurnView } from '../events/turn'
import { useWords } from '../words'
import css from './conversation.module.css'

/** Says that the stream is away, after two seconds of it. */
export function LinkBar({ live }: { live: Live<TurnView> | null }) {
  const w = useWords()
  useLive(live)
  const failing = useFailingSince()
  const away = live?.link.link === 'waiting'
  const [since, setSince] = useState<number | null>(null)
  const [now, setNow] = useState(0)
  useEffect(() => {
    if (!away) return
    setSince((s) => s ?? Date.now())
    const timer = setInterval(() => setNow(Date.now()), 500)
    return () => clearInterval(timer)
  }, [away])
  useEffect(() => {
    if (live?.link.link === 'open') setSince(null)
  })
  // When nothing reaches the server, the bar at the top says so.
  if (!away || failing !== null || since === null || now - since < 1500) return null
  const left = Math.max(1, Math.ceil(((live.link.retryAt ?? now) - now) / 1000))
  return (
    <p className={css.link} role="status">
      {w.link.lost} <span aria-hidden>{w.link.again(left)}</span>
      <button type="button" onClick={retryNow}>
        {w.link.now}
      </button>
    </p>
  )
}
