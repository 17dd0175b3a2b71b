import { backOff } from './events'
import { asProblem, offline, Problem } from './problem'

/** A file that the server takes in pieces: the next one begins at the offset. */
export interface Taken<T> {
  id: string
  offset: number
  /** What the whole file has become. */
  file?: T
}

/** How the server is asked. */
export interface Taker<T> {
  begin: () => Promise<Taken<T>>
  look: (id: string) => Promise<Taken<T>>
  append: (id: string, offset: number, piece: Blob, onPart: (part: number) => void) => Promise<Taken<T>>
}

export interface Sending {
  signal: AbortSignal
  pause: (ms: number, signal: AbortSignal) => Promise<void>
  onPart?: (part: number) => void
  onBegun?: (id: string) => void
  most?: number
}

const size = 8 << 20
const stopped = () => new Problem(0, { code: 'aborted', detail: 'The upload was stopped.' })
const otherPlace = ['upload_offset', 'upload_in_use']
const never = ['aborted', 'fault', 'upload_elsewhere', 'too_many_uploads']

/** The network, a proxy or the server is away, or the offset is another one than was thought: what has come is still there. */
const passes = (p: Problem) =>
  !never.includes(p.code) && ([0, 408, 429, 502, 503, 504].includes(p.status) || otherPlace.includes(p.code))

/** A file that was changed or removed since it was chosen cannot be read any more, which looks like a lost connection when it is sent. */
const readable = (piece: Blob) =>
  new Promise<void>((done, fail) => {
    const reader = new FileReader()
    reader.onload = () => done()
    reader.onerror = () => fail(new Problem(0, { code: 'fault', detail: 'The file cannot be read any more.' }))
    reader.readAsArrayBuffer(piece.slice(0, 1))
  })

/** Sends a file in pieces, over lost connections, each time from where the server has it. */
export async function sendPieces<T>(file: Blob, to: Taker<T>, o: Sending): Promise<T> {
  const most = o.most ?? size
  let at: Taken<T> | null = null
  let known = true
  let furthest = 0
  for (let tries = 0; ; ) {
    if (o.signal.aborted) throw stopped()
    try {
      if (!at) {
        at = await to.begin()
        o.onBegun?.(at.id)
      } else if (!known) {
        at = await to.look(at.id)
        await readable(file.slice(at.offset, at.offset + 1))
      }
      known = true
      if (at.file) return at.file
      const from = at.offset
      if (from > furthest) {
        furthest = from
        tries = 0
      }
      const piece = file.slice(from, from + most)
      const whole = file.size
      at = await to.append(at.id, from, piece, (part) => o.onPart?.((from + part * piece.size) / whole))
      o.onPart?.(at.offset / whole)
      if (at.file) return at.file
      // A server that takes nothing and says that all is well is not to be asked at once again.
      if (at.offset <= from && piece.size) throw offline()
    } catch (error) {
      if (o.signal.aborted) throw stopped()
      const problem = asProblem(error)
      if (!passes(problem)) throw problem
      known = false
      await o.pause(backOff(tries++), o.signal)
    }
  }
}
