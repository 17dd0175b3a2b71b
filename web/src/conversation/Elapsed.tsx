import { useEffect, useState } from 'react'
import { seconds } from '../parts/format'

/** Seconds since it was first shown, from `from` seconds on. */
export function Elapsed({ from = 0 }: { from?: number }) {
  const [begun] = useState(() => performance.now())
  const [now, setNow] = useState(begun)
  useEffect(() => {
    const timer = setInterval(() => setNow(performance.now()), 1000)
    return () => clearInterval(timer)
  }, [])
  const passed = Math.floor((now - begun) / 1000)
  return passed < from ? null : passed < 60 ? `${passed} s` : seconds(passed)
}
