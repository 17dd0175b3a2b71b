import { useEffect } from 'react'
import type { Turn } from '../api/client'
import { queries } from '../api/queries'
import { onTurnOver } from '../events/live'

export type Mark = '' | 'running' | 'done'

let title = 'cove'
let mark: Mark = ''

const signs: Record<Mark, string> = { '': '', running: '◌ ', done: '✓ ' }

export const tabTitle = (text: string, of: Mark) => `${signs[of]}${text}`

const write = () => {
  document.title = tabTitle(title, mark)
}

/** Names the browser's tab. */
export function nameTab(text: string) {
  title = text
  write()
}

function setMark(next: Mark) {
  if (mark === next) return
  mark = next
  write()
}

const isRunning = (turns: readonly Turn[] | undefined) => turns?.some((t) => t.state === 'running') ?? false

/** Marks the tab while a turn that the page knows of runs, and when one ended that nobody looked at. */
export function useTabMark() {
  useEffect(() => {
    const cache = queries.getQueryCache()
    const running = () => cache.findAll({ queryKey: ['turns'] }).some((q) => isRunning(q.state.data as Turn[]))
    const look = () => {
      if (running()) setMark('running')
      else if (mark === 'running') setMark('')
    }
    const over = onTurnOver(() => {
      if (document.hidden) setMark('done')
    })
    const seen = () => {
      if (!document.hidden && mark === 'done') setMark(running() ? 'running' : '')
    }
    const off = cache.subscribe((e) => {
      if (e.type !== 'updated' || e.query.queryKey[0] !== 'turns' || (mark === 'done' && document.hidden)) return
      look()
    })
    document.addEventListener('visibilitychange', seen)
    return () => {
      over()
      off()
      document.removeEventListener('visibilitychange', seen)
    }
  }, [])
}
