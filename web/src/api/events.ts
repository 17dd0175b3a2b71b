import { EventSourceParserStream } from 'eventsource-parser/stream'

/** One event of a turn or an execution. */
export interface Said {
  id: number
  type: string
  event: Record<string, unknown>
}

function parse(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text)
    return value && typeof value === 'object' && !Array.isArray(value) ? (value as Record<string, unknown>) : null
  } catch {
    return null
  }
}

const typeOf = (event: Record<string, unknown>, name = '') => (typeof event.type === 'string' ? event.type : name)

export const saidOf = (id: number, event: Record<string, unknown>, name?: string): Said => ({
  id,
  type: typeOf(event, name),
  event,
})

/** Reads the events of an answer until it ends, or until take says so. */
export async function readEvents(response: Response, take: (said: Said) => boolean | undefined): Promise<void> {
  if (!response.body) return
  const reader = response.body
    .pipeThrough(new TextDecoderStream() as never)
    .pipeThrough(new EventSourceParserStream() as never)
    .getReader()
  for (;;) {
    const { done, value } = (await reader.read()) as {
      done: boolean
      value?: { id?: string; event?: string; data: string }
    }
    if (done || !value) return
    const event = parse(value.data)
    if (event && take(saidOf(Number(value.id) || 0, event, value.event))) {
      void reader.cancel()
      return
    }
  }
}

const shortest = 500
const longest = 20_000

/** Milliseconds to wait before another try. */
export const backOff = (tries: number, random = Math.random) =>
  Math.min(longest, shortest * 2 ** tries) * (0.5 + random() / 2)

/** The server ends a stream that it had to cut with a failure of this code: it is to be followed again. */
export const isCut = (said: Said) => said.type === 'failure' && said.event.code === 'stream_cut'
