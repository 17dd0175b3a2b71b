import { api, fileAddress } from './base'
import { client, data, devHeaders, insist, once } from './client'
import { pause } from './follow'
import { sendPieces, type Taken } from './pieces'
import { asProblem, offline, Problem } from './problem'

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

/** Files above this many bytes come in pieces: a lost connection costs smaller ones little. */
const large = 8 << 20

interface Stored {
  id: string
  name: string
  size: number
}

type OnPart = (part: number) => void

/** Sends a file in pieces. Where that is not possible, `instead` sends all of it at once. */
function inPieces<T>(
  file: Blob,
  name: string,
  onPart: OnPart | undefined,
  then: (stored: Stored) => Promise<T>,
  instead: () => Upload<T>,
): Upload<T> {
  const control = new AbortController()
  const { signal } = control
  const header = once()
  let begun = ''
  const stops = <R>(sending: Upload<R>) => {
    if (signal.aborted) sending.abort()
    signal.addEventListener('abort', sending.abort, { once: true })
    return sending.done.finally(() => signal.removeEventListener('abort', sending.abort))
  }
  const drop = () => {
    if (begun) void client.DELETE('/uploads/{upload}', { params: { path: { upload: begun } } }).catch(() => undefined)
  }
  const send = async () => {
    try {
      const stored = await sendPieces<Stored>(
        file,
        {
          begin: () => data(client.POST('/uploads', { params: { header }, body: { name, size: file.size }, signal })),
          look: (upload) => data(client.GET('/uploads/{upload}', { params: { path: { upload } }, signal })),
          append: (upload, offset, piece, onPiece) =>
            stops(
              transfer<Taken<Stored>>(
                'PATCH',
                api(`uploads/${upload}`),
                piece,
                { ...binary, 'Upload-Offset': String(offset) },
                onPiece,
              ),
            ),
        },
        {
          signal,
          pause,
          onBegun: (id) => {
            begun = id
          },
          ...(onPart ? { onPart } : {}),
        },
      )
      return await then(stored)
    } catch (error) {
      drop()
      // Requests come to servers that do not share a disk, or uploads of pages that were left are not dropped yet.
      if (!['upload_elsewhere', 'too_many_uploads'].includes(asProblem(error).code)) throw error
      return stops(instead())
    }
  }
  return { done: send(), abort: () => control.abort() }
}

/** Puts a file into the store, to be named in a turn. */
export function storeFile(file: Blob, name: string, onPart?: OnPart): Upload<Stored> {
  const whole = () =>
    transfer<Stored>('POST', `${api('files')}?name=${encodeURIComponent(name)}`, file, { ...binary, ...once() }, onPart)
  return file.size > large ? inPieces(file, name, onPart, async (stored) => stored, whole) : whole()
}

type Put = { path: string; size: number }

/** Puts a file into a session's workspace. A large one is in the store on its way. */
export function putFile(session: string, path: string, file: Blob, onPart?: OnPart): Upload<Put> {
  const whole = () => transfer<Put>('PUT', fileAddress(session, path), file, binary, onPart)
  if (file.size <= large) return whole()
  const put = async (stored: Stored) => {
    try {
      return await insist(
        () =>
          data(
            client.POST('/sessions/{session}/files', {
              params: { path: { session } },
              body: { file: stored.id, path },
            }),
          ),
        6,
      )
    } finally {
      void client.DELETE('/files/{file}', { params: { path: { file: stored.id } } }).catch(() => undefined)
    }
  }
  return inPieces(file, path.split('/').at(-1) || 'file', onPart, put, whole)
}
