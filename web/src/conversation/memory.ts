// What the page knows beyond the API: steps that were unfolded.

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
