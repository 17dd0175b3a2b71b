import {
  createContext,
  lazy,
  type ReactNode,
  type RefObject,
  Suspense,
  useContext,
  useEffect,
  useMemo,
  useRef,
  useState,
} from 'react'
import type { Chart } from './ChartView'
import type { Picture } from './image'

const Lightbox = lazy(() => import('./Lightbox'))

export interface Shown {
  /** An image, or a chart that is drawn anew for the full screen. */
  what: { picture: Picture } | { chart: Chart }
  alt: string
  /** For the names of files. */
  number: number
  /** Where it is in the page; one figure has the same box for as long as it is there. */
  box: RefObject<Element | null>
}

/** The figures around know of each other, for the arrows of the full screen. */
export interface Album {
  add: (figure: Shown) => () => void
  open: (figure: Shown) => void
}

const none: Album = { add: () => () => {}, open: () => {} }
export const AlbumContext = createContext<Album>(none)

/** Of which step outputs are, for their names. */
export const StepContext = createContext(0)

function before(a: Shown, b: Shown): number {
  const [x, y] = [a.box.current, b.box.current]
  if (!x || !y || x === y) return 0
  return x.compareDocumentPosition(y) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1
}

interface Open {
  list: Shown[]
  at: number
}

/** The full screen after a figure came, or came anew: it changes with the theme, for one. What one looks at stays; figures that have gone meanwhile do too. */
export function arranged({ list, at }: Open, all: ReadonlySet<Shown>, figure: Shown): Open {
  const seen = list[at]
  const next = list.map((f) => (f.box === figure.box ? figure : f))
  if (!next.includes(figure)) {
    const place = next.findIndex((f) => all.has(f) && before(figure, f) < 0)
    next.splice(place < 0 ? next.length : place, 0, figure)
  }
  return {
    list: next,
    at: Math.max(
      0,
      next.findIndex((f) => f === seen || f.box === seen?.box),
    ),
  }
}

/** One album for all figures inside; an album in an album is the outer one. */
export function Figures({ children }: { children: ReactNode }) {
  const outer = useContext(AlbumContext)
  return outer === none ? <Own>{children}</Own> : children
}

function Own({ children }: { children: ReactNode }) {
  const figures = useRef(new Set<Shown>())
  const from = useRef<Element>(null) // what had the focus
  const [open, setOpen] = useState<Open | null>(null)
  const album = useMemo<Album>(
    () => ({
      add: (figure) => {
        figures.current.add(figure)
        setOpen((o) => o && arranged(o, figures.current, figure))
        return () => figures.current.delete(figure)
      },
      open: (figure) => {
        from.current = document.activeElement
        const list = [...figures.current].sort(before)
        setOpen({ list, at: Math.max(0, list.indexOf(figure)) })
      },
    }),
    [],
  )
  // React Aria gives the focus back, but not always after it was in the frame of a chart.
  const shut = open === null
  useEffect(() => {
    if (!shut) {
      return () => {
        const back = from.current
        requestAnimationFrame(() => {
          if (document.activeElement === document.body && back instanceof HTMLElement) back.focus()
        })
      }
    }
  }, [shut])
  return (
    <AlbumContext value={album}>
      {children}
      {open && (
        <Suspense>
          <Lightbox
            figures={open.list}
            at={open.at}
            onMove={(at) => setOpen({ ...open, at })}
            onClose={() => setOpen(null)}
          />
        </Suspense>
      )}
    </AlbumContext>
  )
}
