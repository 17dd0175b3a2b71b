import { useSyncExternalStore } from 'react'

export interface Preferences {
  language: '' | 'en' | 'zh'
  theme: 'system' | 'light' | 'dark'
  sendKey: 'enter' | 'mod'
  letters: boolean
  /** The model's code is looked at when it has run. */
  checks: boolean
  /** How many times each question is answered at once; 1: no tries. */
  tries: 1 | 3 | 5
  sidebar: boolean
  panels: boolean
  contrast: 'system' | 'high'
  sideWidth: number
  panelsWidth: number
}

const place = 'cove.preferences'
const usual: Preferences = {
  language: '',
  theme: 'system',
  sendKey: 'enter',
  letters: true,
  checks: false,
  tries: 1,
  sidebar: true,
  panels: false,
  contrast: 'system',
  sideWidth: 264,
  panelsWidth: 340,
}

function stored(): Preferences {
  try {
    return { ...usual, ...(JSON.parse(localStorage.getItem(place) ?? '{}') as Partial<Preferences>) }
  } catch {
    return usual
  }
}

let now = stored()
const readers = new Set<() => void>()

const dark = typeof matchMedia === 'function' ? matchMedia('(prefers-color-scheme: dark)') : null

function tell() {
  for (const call of readers) call()
}

export const preferences = () => now

export function prefer(change: Partial<Preferences>) {
  now = { ...now, ...change }
  try {
    localStorage.setItem(place, JSON.stringify(now))
  } catch {
    // Storage is full or forbidden: the choice lasts as long as the page.
  }
  tell()
}

dark?.addEventListener('change', tell)
window.addEventListener('storage', (e) => {
  if (e.key !== place) return
  now = stored()
  tell()
})

const subscribe = (call: () => void) => {
  readers.add(call)
  return () => {
    readers.delete(call)
  }
}

export const usePreferences = (): Preferences => useSyncExternalStore(subscribe, preferences)

const themeNow = (): 'light' | 'dark' => (now.theme === 'system' ? (dark?.matches ? 'dark' : 'light') : now.theme)

export const useTheme = () => useSyncExternalStore(subscribe, themeNow)

/** Whether a key sends what a box has, as the person wants it. */
export const isSend = (e: { key: string; shiftKey: boolean; ctrlKey: boolean; metaKey: boolean }) =>
  e.key === 'Enter' && !e.shiftKey && (e.ctrlKey || e.metaKey || preferences().sendKey === 'enter')
