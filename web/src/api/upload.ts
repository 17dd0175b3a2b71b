import { api, fileAddress } from './base'
import { devHeaders, once } from './client'
import { offline, Problem } from './problem'

export interface Upload<T> {
  done: Promise<T>
  abort: () => void
}

/** Sends a file by XMLHttpRequest, the only way to learn how much of it has left. */
function transfer<T>(
  method: string,
  address: string,
  body: Blob,
  headers: Record<string, string>,
  onPart?: (part: number) => void,
): Upload<T> {
  const request = new XMLHttpRequest()
  const done = new Promise<T>((resolve, reject) => {
    request.open(method, address)
    for (const [name, value] of Object.entries({ ...devHeaders(), ...headers })) request.setRequestHeader(name, value)
    request.upload.onprogress = (e) => e.lengthComputable && onPart?.(e.total ? e.loaded / e.total : 1)
    request.onload = () => {
      let said: unknown = {}
      try {
        said = request.responseText ? JSON.parse(request.responseText) : {}
      } catch {
        // Not the API's own answer.
      }
      if (request.status >= 200 && request.status < 300) resolve(said as T)
      else reject(new Problem(request.status, (said ?? {}) as object))
    }
    request.onerror = () => reject(offline())
    request.onabort = () => reject(new Problem(0, { code: 'aborted', detail: 'The upload was stopped.' }))
    request.send(body)
  })
  return { done, abort: () => request.abort() }
}

const binary = { 'Content-Type': 'application/octet-stream' }

/** Puts a file into the store, to be named in a turn. */
export const storeFile = (file: Blob, name: string, onPart?: (part: number) => void) =>
  transfer<{ id: string; name: string; size: number }>(
    'POST',
    `${api('files')}?name=${encodeURIComponent(name)}`,
    file,
    { ...binary, ...once() },
    onPart,
  )

/** Puts a file into a session's workspace. */
export const putFile = (session: string, path: string, file: Blob, onPart?: (part: number) => void) =>
  transfer<{ path: string; size: number }>('PUT', fileAddress(session, path), file, binary, onPart)
