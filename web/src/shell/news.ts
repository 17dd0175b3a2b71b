import { useEffect } from 'react'
import type { Change } from '../api/channel'
import type { Caller } from '../api/client'
import { connect, onChange } from '../api/follow'
import { queries } from '../api/queries'
import { look, noteChange } from '../events/work'

// Records that change are read anew, where somebody sees them: changes that come together cause one request.
const quiet = 300 // milliseconds

/** The keys of what a change makes old. */
export function staleAfter({ kind, id, conversation, session }: Change): string[][] {
  switch (kind) {
    case 'conversation':
      return [['conversations'], ...(id ? ['conversation', 'queue'].map((part) => [part, id]) : [])]
    case 'turn':
      return [['conversations'], ...(conversation ? [['turns', conversation]] : [])]
    case 'session':
      return [['sessions'], ...(id ? [['session', id]] : [])]
    case 'execution':
      return session ? ['executions', 'files', 'variables', 'session'].map((part) => [part, session]) : []
    default:
      return [[]]
  }
}

/** Hears of what changes on the server, and reads it anew. shown is the conversation on the screen. */
export function useNews(who: Caller, shown: string | null) {
  useEffect(() => {
    const old = new Map<string, string[]>()
    let timer: ReturnType<typeof setTimeout> | undefined
    const read = () => {
      timer = undefined
      for (const queryKey of old.values()) void queries.invalidateQueries({ queryKey })
      old.clear()
    }
    const off = onChange((change) => {
      noteChange(change)
      for (const key of staleAfter(change)) old.set(key.join(' '), key)
      timer ??= setTimeout(read, quiet)
    })
    connect(`${who.user} ${who.project}`)
    return () => {
      off()
      clearTimeout(timer)
    }
  }, [who.user, who.project])
  useEffect(() => {
    const seen = () => look(shown)
    seen()
    document.addEventListener('visibilitychange', seen)
    return () => document.removeEventListener('visibilitychange', seen)
  }, [shown])
}
