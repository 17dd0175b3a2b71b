import { useSyncExternalStore } from 'react'

// Whether the server answers, as told by the page's requests themselves.

let failing: number | null = null // since when
const readers = new Set<() => void>()

const tell = () => {
  for (const call of readers) call()
}

/** A request came to nothing: the network or a proxy is away. */
export function noteFailure(now = Date.now()) {
  if (failing !== null) return
  failing = now
  tell()
}

/** The server answered. */
export function noteAnswer() {
  if (failing === null) return
  failing = null
  tell()
}

const subscribe = (call: () => void) => {
  readers.add(call)
  return () => {
    readers.delete(call)
  }
}

export const failingSince = () => failing

/** Since when no request was answered; null while they are. */
export const useFailingSince = () => useSyncExternalStore(subscribe, failingSince)
