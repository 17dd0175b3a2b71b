import { useEffect, useRef, useState } from 'react'
import { api } from '../api/base'
import { send } from '../api/client'
import { useFailingSince } from '../api/connection'
import { backOff, retryNow } from '../api/follow'
import { queries } from '../api/queries'
import { toast } from '../parts'
import { useWords } from '../words'
import css from './shell.module.css'

const quiet = 2000 // milliseconds that nobody has to hear of

const again = () => send(api('health'), { cache: 'no-store' }).catch(() => undefined)

/** Says that the server is away when it is for longer than a moment, asks again by itself, and says that it is back. */
export function Connection() {
  const w = useWords()
  const since = useFailingSince()
  const [shown, setShown] = useState(false)
  const was = useRef(false)
  was.current = shown
  useEffect(() => {
    if (since === null) {
      if (!was.current) return
      setShown(false)
      toast(w.shell.back)
      retryNow()
      void queries.invalidateQueries()
      return
    }
    let tries = 0
    let timer: ReturnType<typeof setTimeout>
    const look = async () => {
      await again()
      // Whether it failed anew is told by the store, which ends this.
      setShown(true)
      timer = setTimeout(() => void look(), backOff(++tries))
    }
    timer = setTimeout(() => void look(), quiet)
    const online = () => void again()
    window.addEventListener('online', online)
    return () => {
      clearTimeout(timer)
      window.removeEventListener('online', online)
    }
  }, [since, w])
  if (!shown || since === null) return null
  return (
    <div className={css.away} role="status">
      {w.shell.away}
      <button type="button" onClick={() => void again()}>
        {w.shell.awayNow}
      </button>
    </div>
  )
}
