import { useEffect, useRef } from 'react'

interface Pressed {
  nativeEvent?: { isComposing?: boolean }
  isComposing?: boolean
  keyCode: number
}

/** Whether a key belongs to an input method. Safari ends the composition before the key comes: 229 is the only sign then. */
export const isComposing = (e: Pressed): boolean =>
  (e.nativeEvent?.isComposing ?? e.isComposing ?? false) || e.keyCode === 229

export const isMac = /Mac|iPhone|iPad/.test(navigator.platform)

export const isMod = (e: { metaKey: boolean; ctrlKey: boolean }) => (isMac ? e.metaKey : e.ctrlKey)

/** The same, as aria-keyshortcuts names it. */
export const modKey = isMac ? 'Meta' : 'Control'

export const modName = isMac ? '⌘' : 'Ctrl'

/** Whether what has the focus takes letters. */
export function inText(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false
  return target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)
}

/** Listens to keys of the whole page, without those of input methods. */
export function usePageKeys(handle: (e: KeyboardEvent) => void) {
  const latest = useRef(handle)
  latest.current = handle
  useEffect(() => {
    const listen = (e: KeyboardEvent) => {
      if (!isComposing(e) && !e.defaultPrevented) latest.current(e)
    }
    window.addEventListener('keydown', listen)
    return () => window.removeEventListener('keydown', listen)
  }, [])
}
