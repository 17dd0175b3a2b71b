import { useEffect, useRef, useState } from 'react'
import { toast } from '../parts'
import { bytes } from '../parts/format'
import { useWords } from '../words'
import { attach } from './attachments'
import css from './composer.module.css'
import { dropped, mostFiles, pastedFiles } from './drop'

/** Takes files that are dropped or pasted anywhere on the page. */
export function DropZone({ scope, onFiles }: { scope: string; onFiles?: (files: File[]) => void }) {
  const w = useWords()
  const [over, setOver] = useState(false)
  const depth = useRef(0)
  useEffect(() => {
    const take = (files: File[]) =>
      onFiles ? onFiles(files) : attach(scope, files, (most) => w.shell.tooLarge(bytes(most)))
    const has = (e: DragEvent) => e.dataTransfer?.types.includes('Files') ?? false
    const enter = (e: DragEvent) => {
      if (!has(e)) return
      e.preventDefault()
      depth.current++
      setOver(true)
    }
    const leave = (e: DragEvent) => {
      if (has(e) && --depth.current <= 0) setOver(false)
    }
    const stay = (e: DragEvent) => has(e) && e.preventDefault()
    const drop = (e: DragEvent) => {
      if (!has(e)) return
      e.preventDefault()
      depth.current = 0
      setOver(false)
      if (!e.dataTransfer) return
      void dropped(e.dataTransfer).then(({ files, cut }) => {
        if (cut) toast(w.shell.tooMany(mostFiles), { bad: true })
        else if (!files.length) toast(w.shell.emptyFolder)
        take(files)
      })
    }
    const paste = (e: ClipboardEvent) => {
      if (e.defaultPrevented) return
      const files = pastedFiles(e.clipboardData?.files ?? [], w.shell.image)
      if (!files.length) return
      e.preventDefault()
      take(files)
    }
    window.addEventListener('dragenter', enter)
    window.addEventListener('dragleave', leave)
    window.addEventListener('dragover', stay)
    window.addEventListener('drop', drop)
    window.addEventListener('paste', paste)
    return () => {
      window.removeEventListener('dragenter', enter)
      window.removeEventListener('dragleave', leave)
      window.removeEventListener('dragover', stay)
      window.removeEventListener('drop', drop)
      window.removeEventListener('paste', paste)
    }
  }, [scope, onFiles, w])
  return over ? <div className={css.drop}>{w.composer.dropHere}</div> : null
}
