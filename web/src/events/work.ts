import { useSyncExternalStore } from 'react'
import type { Change } from '../api/channel'

// What goes on in conversations, of whomever and in whichever window, as the server tells.

export type Work = 'running' | 'approval' | 'done' | ''

interface Turns {
  /** Turns that have not ended, with their states. */
  open: Map<string, 'running' | 'approval'>
  /** One ended that nobody has looked at here. */
  news: boolean
}

export interface Works {
  conversations: ReadonlyMap<string, Turns>
}

export const noWorks: Works = { conversations: new Map() }

/** What is known after a change. seen is the conversation that somebody looks at. */
export function applyChange(works: Works, change: Change, seen: string | null): Works {
  if (change.kind !== 'turn' || !change.id || !change.conversation) return works
  const known = works.conversations.get(change.conversation) ?? { open: new Map(), news: false }
  const open = new Map(known.open)
  let { news } = known
  if (change.state === 'running') open.set(change.id, 'running')
  else if (change.state === 'approval') open.set(change.id, 'approval')
  else if (open.delete(change.id)) news = seen !== change.conversation
  const conversations = new Map(works.conversations)
  if (open.size || news) conversations.set(change.conversation, { open, news })
  else conversations.delete(change.conversation)
  return { conversations }
}

export function workOf(works: Works, conversation: string): Work {
  const known = works.conversations.get(conversation)
  if (!known) return ''
  const states = [...known.open.values()]
  if (states.includes('approval')) return 'approval'
  if (states.length) return 'running'
  return known.news ? 'done' : ''
}

/** What is known after somebody looked at a conversation. */
export function looked(works: Works, conversation: string): Works {
  const known = works.conversations.get(conversation)
  if (!known?.news) return works
  const conversations = new Map(works.conversations)
  if (known.open.size) conversations.set(conversation, { ...known, news: false })
  else conversations.delete(conversation)
  return { conversations }
}

let works = noWorks
let seen: string | null = null
const readers = new Set<() => void>()

function set(next: Works) {
  if (next === works) return
  works = next
  for (const call of readers) call()
}

export const noteChange = (change: Change) => set(applyChange(works, change, document.hidden ? null : seen))

/** The conversation that is shown, or none. */
export function look(conversation: string | null) {
  seen = conversation
  if (conversation && !document.hidden) set(looked(works, conversation))
}

const subscribe = (call: () => void) => {
  readers.add(call)
  return () => {
    readers.delete(call)
  }
}

export const useWork = (conversation: string) => useSyncExternalStore(subscribe, () => workOf(works, conversation))
