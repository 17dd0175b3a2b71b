import type { LucideIcon } from 'lucide-react'
import { useEffect, useState } from 'react'
import { Button } from 'react-aria-components'
import css from './parts.module.css'
import { words } from './words'

export function Tool({
  icon: Icon,
  label,
  onPress,
  pressed,
}: {
  icon: LucideIcon
  label: string
  onPress?: () => void
  pressed?: boolean
}) {
  return (
    <Button className={css.tool ?? ''} aria-label={label} aria-pressed={pressed} onPress={onPress}>
      <span title={label}>
        <Icon size={16} aria-hidden />
      </span>
    </Button>
  )
}

/** Says for a moment what came of it. */
export function useSaid(): [string, (work: Promise<unknown>) => void] {
  const [said, setSaid] = useState('')
  useEffect(() => {
    if (!said) return
    const timer = setTimeout(() => setSaid(''), 1500)
    return () => clearTimeout(timer)
  }, [said])
  const say = (work: Promise<unknown>) => {
    work.then(
      () => setSaid(words().copied),
      () => setSaid(words().notCopied),
    )
  }
  return [said, say]
}

export async function copyText(text: string) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text)
  copyVia({ 'text/plain': text })
}

/** For pages without TLS, where there is no clipboard API. */
export function copyVia(data: Record<string, string>) {
  const put = (e: ClipboardEvent) => {
    e.preventDefault()
    for (const [type, text] of Object.entries(data)) e.clipboardData?.setData(type, text)
  }
  document.addEventListener('copy', put, { capture: true, once: true })
  try {
    if (!document.execCommand('copy')) throw new Error('refused')
  } finally {
    document.removeEventListener('copy', put, { capture: true })
  }
}

export function save(blob: Blob, name: string) {
  const url = URL.createObjectURL(blob)
  const a = document.createElement('a')
  a.href = url
  a.download = name
  a.click()
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}

export function useBlobUrl(bytes: Uint8Array<ArrayBuffer> | null, type: string): string | undefined {
  const [url, setUrl] = useState<string>()
  useEffect(() => {
    if (!bytes) return
    const now = URL.createObjectURL(new Blob([bytes], { type }))
    setUrl(now)
    return () => URL.revokeObjectURL(now)
  }, [bytes, type])
  return url
}
