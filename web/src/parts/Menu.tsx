import { EllipsisVertical } from 'lucide-react'
import { type ReactNode, useEffect, useId, useLayoutEffect, useRef, useState } from 'react'
import { isComposing } from './keys'
import css from './parts.module.css'

export interface Action {
  id: string
  label: string
  icon?: ReactNode
  bad?: boolean
  act: () => void
}

interface Props {
  label: string
  actions: Action[]
  small?: boolean
  icon?: ReactNode
  className?: string
  tabIndex?: number
}

const gap = 4
const edge = 8

/** Puts a menu below its button, or above where there is no room. */
function place(box: HTMLElement, at: DOMRect) {
  const below = at.bottom + gap + box.offsetHeight <= window.innerHeight - edge
  box.style.top = `${Math.max(edge, below ? at.bottom + gap : at.top - gap - box.offsetHeight)}px`
  box.style.left = `${Math.max(edge, Math.min(at.right - box.offsetWidth, window.innerWidth - edge - box.offsetWidth))}px`
}

/** A button with three dots and what can be done: arrows, Home, End and the first letter move, Escape and Tab leave. */
export function Actions({ label, actions, small, icon, className = '', tabIndex }: Props) {
  const [open, setOpen] = useState(false)
  const button = useRef<HTMLButtonElement>(null)
  const menu = useRef<HTMLDivElement>(null)
  const id = useId()
  const items = () => [...(menu.current?.querySelectorAll<HTMLElement>('[role=menuitem]') ?? [])]
  const close = (back = true) => {
    setOpen(false)
    if (back) button.current?.focus()
  }

  useLayoutEffect(() => {
    const box = menu.current
    if (!open || !box || !button.current) return
    box.showPopover?.()
    place(box, button.current.getBoundingClientRect())
    box.querySelector<HTMLElement>('[role=menuitem]')?.focus()
  }, [open])

  useEffect(() => {
    if (!open) return
    const outside = (e: Event) => {
      const target = e.target as Node
      if (!menu.current?.contains(target) && !button.current?.contains(target)) setOpen(false)
    }
    const moved = () => setOpen(false)
    // A page may go on scrolling to what has got the focus: the menu stays with its button, as long as that is to be seen.
    const scrolled = () => {
      const at = button.current?.getBoundingClientRect()
      if (!at || at.bottom < 0 || at.top > window.innerHeight) setOpen(false)
      else if (menu.current) place(menu.current, at)
    }
    document.addEventListener('pointerdown', outside)
    document.addEventListener('scroll', scrolled, true)
    window.addEventListener('resize', moved)
    return () => {
      document.removeEventListener('pointerdown', outside)
      document.removeEventListener('scroll', scrolled, true)
      window.removeEventListener('resize', moved)
    }
  }, [open])

  const onKey = (e: React.KeyboardEvent) => {
    if (isComposing(e)) return
    const all = items()
    const at = all.indexOf(document.activeElement as HTMLElement)
    const go = (n: number) => all[(n + all.length) % all.length]?.focus()
    if (e.key === 'ArrowDown') go(at + 1)
    else if (e.key === 'ArrowUp') go(at - 1)
    else if (e.key === 'Home') go(0)
    else if (e.key === 'End') go(-1)
    else if (e.key === 'Escape') close()
    else if (e.key === 'Tab') {
      close()
      return
    } else if (e.key.length === 1 && e.key !== ' ') {
      const letter = e.key.toLowerCase()
      const next = [...actions.keys()]
        .map((n) => (at + 1 + n) % actions.length)
        .find((n) => actions[n]?.label.toLowerCase().startsWith(letter))
      if (next !== undefined) go(next)
    } else return
    e.preventDefault()
    e.stopPropagation()
  }

  return (
    <>
      <button
        ref={button}
        type="button"
        tabIndex={tabIndex}
        aria-label={label}
        title={label}
        aria-haspopup="menu"
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        className={`${css.icon} ${small ? css.small : ''} ${className}`}
        onClick={() => setOpen(!open)}
        onKeyDown={(e) => {
          if (e.key !== 'ArrowDown' || isComposing(e)) return
          e.preventDefault()
          setOpen(true)
        }}
      >
        {icon ?? <EllipsisVertical size={16} aria-hidden />}
      </button>
      {open && (
        <div
          ref={menu}
          id={id}
          role="menu"
          tabIndex={-1}
          aria-label={label}
          popover="manual"
          className={css.menu}
          onKeyDown={onKey}
        >
          {actions.map((a) => (
            <button
              key={a.id}
              type="button"
              role="menuitem"
              tabIndex={-1}
              className={`${css.item} ${a.bad ? css.bad : ''}`}
              onClick={() => {
                close()
                a.act()
              }}
            >
              {a.icon}
              {a.label}
            </button>
          ))}
        </div>
      )}
    </>
  )
}
