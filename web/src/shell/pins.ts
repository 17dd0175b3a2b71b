import { useSyncExternalStore } from 'react'

const place = 'cove.pins'
const most = 30

function stored(): string[] {
  try {
    const said: unknown = JSON.parse(localStorage.getItem(place) ?? '[]')
    return Array.isArray(said) ? said.filter((id) => typeof id === 'string').slice(0, most) : []
  } catch {
    return []
  }
}

let now = stored()
const readers = new Set<() => void>()
const tell = () => {
  for (const call of readers) call()
}

window.addEventListener('storage', (e) => {
  if (e.key !== place) return
  now = stored()
  tell()
})

export const pins = () => now

/** Pins a conversation in this browser, or no longer: what others of the project see stays as it is. */
export function pin(id: string, on: boolean) {
  const rest = now.filter((p) => p !== id)
  now = on ? [id, ...rest].slice(0, most) : rest
  try {
    localStorage.setItem(place, JSON.stringify(now))
  } catch {
    // Storage is full or forbidden: it holds as long as the page.
  }
  tell()
}

export const usePins = () =>
  useSyncExternalStore((call) => {
    readers.add(call)
    return () => {
      readers.delete(call)
    }
  }, pins)
