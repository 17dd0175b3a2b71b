import { createContext, useContext, useEffect } from 'react'

/** Takes what is still to come: 1 for more, -1 for less. */
export const PendingContext = createContext<(by: 1 | -1) => void>(() => undefined)

/** Holds the printing up while something is not there yet. */
export function usePending(on: boolean) {
  const count = useContext(PendingContext)
  useEffect(() => {
    if (!on) return
    count(1)
    return () => count(-1)
  }, [on, count])
}
