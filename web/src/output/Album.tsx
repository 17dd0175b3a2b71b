import { createContext, lazy, type ReactNode, Suspense, useContext, useMemo, useRef, useState } from 'react'
import type { Picture } from './image'

const Lightbox = lazy(() => import('./Lightbox'))

export interface Shown {
  picture: Picture
  alt: string
  /** Where it is in the page. */
  at: () => Element | null
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
  const [x, y] = [a.at(), b.at()]
  if (!x || !y || x === y) return 0
  return x.compareDocumentPosition(y) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1
}

/** One album for all figures inside; an album in an album is the outer one. */
export function Figures({ children }: { children: ReactNode }) {
  const outer = useContext(AlbumContext)
  return outer === none ? <Own>{children}</Own> : children
}

function Own({ children }: { children: ReactNode }) {
  const figures = useRef(new Set<Shown>())
  const [open, setOpen] = useState<{ list: Shown[]; at: number } | null>(null)
  const album = useMemo<Album>(
    () => ({
      add: (figure) => {
        figures.current.add(figure)
        return () => figures.current.delete(figure)
      },
      open: (figure) => {
        const list = [...figures.current].sort(before)
        setOpen({ list, at: Math.max(0, list.indexOf(figure)) })
      },
    }),
    [],
  )
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
