import { useSyncExternalStore } from 'react'
import type { Question } from '../composer/Composer'

// What the page knows beyond the API: steps that were unfolded, questions that wait.

const most = 300

export function read<T>(storage: Storage, place: string, otherwise: T): T {
  try {
    return (JSON.parse(storage.getItem(place) ?? 'null') as T | null) ?? otherwise
  } catch {
    return otherwise
  }
}

export function write(storage: Storage, place: string, value: unknown) {
  try {
    storage.setItem(place, JSON.stringify(value))
  } catch {
    // Storage is full or forbidden: it is known until the page is left.
  }
}

const unfolded = new Set<string>(read<string[]>(sessionStorage, 'cove.unfolded', []))

export const isUnfolded = (key: string) => unfolded.has(key)

export function unfold(key: string, open: boolean) {
  if (open) unfolded.add(key)
  else unfolded.delete(key)
  write(sessionStorage, 'cove.unfolded', [...unfolded].slice(-most))
}

export interface Queued extends Question {
  key: string
}

const none: Queued[] = []
const queues = new Map<string, Queued[]>(
  Object.entries(read<Record<string, Queued[]>>(sessionStorage, 'cove.queue', {})),
)
const readers = new Set<() => void>()

export const queueOf = (conversation: string) => queues.get(conversation) ?? none

export function setQueue(conversation: string, list: Queued[]) {
  if (list.length) queues.set(conversation, list)
  else queues.delete(conversation)
  write(sessionStorage, 'cove.queue', Object.fromEntries(queues))
  for (const call of readers) call()
}

export const useQueue = (conversation: string) =>
  useSyncExternalStore(
    (call) => {
      readers.add(call)
      return () => {
        readers.delete(call)
      }
    },
    () => queueOf(conversation),
  )
