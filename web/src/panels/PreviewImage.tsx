import { useEffect, useState } from 'react'
import { fileAddress } from '../api/base'
import { send } from '../api/client'
import { ProblemBox } from '../parts'
import { plainName } from '../parts/format'
import { useWords } from '../words'
import css from './panels.module.css'

const most = 30_000_000 // bytes
const types: [string, number[]][] = [
  ['image/png', [0x89, 0x50, 0x4e, 0x47]],
  ['image/jpeg', [0xff, 0xd8, 0xff]],
  ['image/gif', [0x47, 0x49, 0x46, 0x38]],
  ['image/webp', [0x52, 0x49, 0x46, 0x46]],
  ['image/bmp', [0x42, 0x4d]],
]

/** What an image is by its own bytes, whatever the sandbox says of it. Never SVG. */
export const typeOf = (b: Uint8Array): string | null =>
  types.find(([, head]) => head.every((n, i) => b[i] === n))?.[0] ?? null

/** The image itself, from a copy that the page holds. */
export function PreviewImage({ session, path, size }: { session: string; path: string; size: number }) {
  const w = useWords()
  const [url, setUrl] = useState('')
  const [problem, setProblem] = useState<unknown>(null)
  const [broken, setBroken] = useState(false)
  const large = size > most
  useEffect(() => {
    if (large) return
    const control = new AbortController()
    let made = ''
    const read = async () => {
      const response = await send(fileAddress(session, path), { signal: control.signal })
      const all = new Uint8Array(await response.arrayBuffer())
      const type = typeOf(all)
      if (control.signal.aborted) return
      if (!type || all.length > most) {
        setBroken(true)
        return
      }
      made = URL.createObjectURL(new Blob([all], { type }))
      setUrl(made)
    }
    read().catch((error) => {
      if (!control.signal.aborted) setProblem(error)
    })
    return () => {
      control.abort()
      if (made) URL.revokeObjectURL(made)
    }
  }, [session, path, large])
  if (problem) return <ProblemBox error={problem} />
  if (large) return <p className={css.quiet}>{w.preview.large}</p>
  if (broken) return <p className={css.quiet}>{w.preview.broken}</p>
  if (!url) return <p className={css.quiet}>{w.loading}</p>
  return <img className={css.image} src={url} alt={plainName(path)} onError={() => setBroken(true)} />
}
