import { useSyncExternalStore } from 'react'

// Whether the digits of large numbers in tables are grouped by thousands, in this browser.

const place = 'cove.grouping'
const readers = new Set<() => void>()

function stored(): boolean {
  try {
    return localStorage.getItem(place) !== 'off'
  } catch {
    return true
  }
}

let grouping = stored()

export function setGrouping(on: boolean) {
  grouping = on
  try {
    localStorage.setItem(place, on ? 'on' : 'off')
  } catch {
    // Storage is full or forbidden: the choice lasts as long as the page.
  }
  for (const call of readers) call()
}

const subscribe = (call: () => void) => {
  readers.add(call)
  return () => {
    readers.delete(call)
  }
}

export const useGrouping = () => useSyncExternalStore(subscribe, () => grouping)
