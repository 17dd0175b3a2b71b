import { useCallback, useEffect, useRef, useState } from 'react'

/** Keeps the end in sight while the person is there. Whoever scrolls up is left in peace. */
export function useBottom(count: number) {
  const box = useRef<HTMLDivElement>(null)
  const stick = useRef(true)
  const [atEnd, setAtEnd] = useState(true)
  const toEnd = useCallback((smooth = false) => {
    stick.current = true
    setAtEnd(true)
    requestAnimationFrame(() =>
      box.current?.scrollTo({ top: box.current.scrollHeight, behavior: smooth ? 'smooth' : 'instant' }),
    )
  }, [])
  // biome-ignore lint/correctness/useExhaustiveDependencies: the box is there when the first turn is
  useEffect(() => {
    const outer = box.current
    const inner = outer?.firstElementChild
    if (!outer || !inner) return
    let top = outer.scrollTop
    const away = () => outer.scrollHeight - outer.scrollTop - outer.clientHeight
    const scrolled = () => {
      if (outer.scrollTop < top - 2) stick.current = away() < 8
      else if (away() < 48) stick.current = true
      top = outer.scrollTop
      setAtEnd(away() < 160)
    }
    const grown = new ResizeObserver(() => {
      const selected = document.getSelection()
      if (stick.current && (!selected || selected.isCollapsed)) outer.scrollTop = outer.scrollHeight
      else setAtEnd(away() < 160)
    })
    outer.addEventListener('scroll', scrolled, { passive: true })
    grown.observe(inner)
    grown.observe(outer)
    return () => {
      outer.removeEventListener('scroll', scrolled)
      grown.disconnect()
    }
  }, [count > 0])
  return { box, atEnd, toEnd }
}
