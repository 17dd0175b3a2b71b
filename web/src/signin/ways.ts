import { useEffect, useState } from 'react'
import { client, data } from '../api/client'

/** How somebody signs in without a code. */
export type Way = 'key' | 'password'

const place = 'cove.way'

/** The way that was used last in this browser. */
export function lastWay(): Way | null {
  try {
    const kept = localStorage.getItem(place)
    return kept === 'key' || kept === 'password' ? kept : null
  } catch {
    return null
  }
}

export function keepWay(way: Way) {
  try {
    localStorage.setItem(place, way)
  } catch {
    // Storage is full or forbidden: the next sign-in begins with the key.
  }
}

/** Whether the server knows passwords; null until it has said so. A server that does not answer that has none. */
export function usePasswords(): boolean | null {
  const [known, setKnown] = useState<boolean | null>(null)
  useEffect(() => {
    let left = false
    data(client.GET('/settings/public'))
      .then(({ passwords }) => !left && setKnown(passwords))
      .catch(() => !left && setKnown(false))
    return () => {
      left = true
    }
  }, [])
  return known
}

/** Takes a secret out of the address bar at once, before anything else can copy it from there. */
function take(name: string): string | null {
  const value = new URLSearchParams(location.hash.slice(1)).get(name)
  if (value !== null) history.replaceState(history.state, '', location.pathname + location.search)
  return value
}

/** The one-time code of the address that cove serve prints. */
export const takeCode = () => take('setup')

/** The code of an invitation. */
export const takeInvitation = () => take('invitation')

const shortest = 10
const longest = 200

/** What the server's rules say of a password's length, in characters as people count them. */
export function lengthOf(password: string): { n: number; fits: boolean; tooLong: boolean } {
  const n = Array.from(password.normalize('NFKC')).length
  return { n, fits: n >= shortest && n <= longest, tooLong: n > longest }
}
