import { describe, expect, it } from 'vitest'
import { sendPieces, type Taken, type Taker } from './pieces'
import { offline, Problem } from './problem'

type Stored = { id: string }

/** A server that takes 10 bytes in all, and fails as the test has it. */
function server(whole = 10) {
  const s = {
    has: '',
    appends: [] as number[],
    looks: 0,
    begins: 0,
    waits: 0,
    done: false,
    fail: [] as ((text: string) => void)[], // of the next appends
    late: [] as Error[], // of the beginning
    away: [] as Error[], // of the next looks
    state(): Taken<Stored> {
      return { id: 'upl_1', offset: s.has.length, ...(s.done ? { file: { id: 'fil_1' } } : {}) }
    },
  }
  const taker: Taker<Stored> = {
    begin: async () => {
      s.begins++
      const late = s.late.shift()
      if (late) throw late
      return s.state()
    },
    look: async () => {
      s.looks++
      const away = s.away.shift()
      if (away) throw away
      return s.state()
    },
    append: async (_, offset, piece, onPart) => {
      s.appends.push(offset)
      const text = await new Promise<string>((done) => {
        const reader = new FileReader()
        reader.onload = () => done(String(reader.result))
        reader.readAsText(piece)
      })
      onPart(0.5)
      s.fail.shift()?.(text)
      if (offset !== s.has.length) throw new Problem(409, { code: 'upload_offset' })
      s.has += text
      s.done = s.has.length === whole
      return s.state()
    },
  }
  const control = new AbortController()
  const parts: number[] = []
  const send = (file: Blob) =>
    sendPieces(file, taker, {
      signal: control.signal,
      pause: async () => {
        s.waits++
      },
      onPart: (part) => parts.push(part),
      most: 4,
    })
  return { s, send, parts, control }
}

const file = () => new Blob(['0123456789'])
const lose =
  (kept: (text: string) => void, error: Error = offline()) =>
  (text: string) => {
    kept(text)
    throw error
  }

describe('a file in pieces', () => {
  it('comes in order, and tells how much of all has left', async () => {
    const { s, send, parts } = server()
    expect(await send(file())).toEqual({ id: 'fil_1' })
    expect(s.has).toBe('0123456789')
    expect(s.appends).toEqual([0, 4, 8])
    expect(parts).toEqual([0.2, 0.4, 0.6, 0.8, 0.9, 1])
    expect(s.waits).toBe(0)
  })

  it('goes on from where the server has it when the connection is lost', async () => {
    const { s, send } = server()
    s.fail = [() => undefined, lose((text) => (s.has += text.slice(0, 1)))]
    expect(await send(file())).toEqual({ id: 'fil_1' })
    expect(s.has).toBe('0123456789')
    expect(s.appends).toEqual([0, 4, 5, 9])
    expect(s.looks).toBe(1)
  })

  it('waits as long as nothing answers', async () => {
    const { s, send } = server()
    s.fail = [lose(() => undefined)]
    s.away = [502, 503, 504, 0, 429].map((status) => (status ? new Problem(status, {}) : offline()))
    s.late = [offline()]
    expect(await send(file())).toEqual({ id: 'fil_1' })
    expect(s.begins).toBe(2)
    expect(s.looks).toBe(5 + 1)
    expect(s.waits).toBe(1 + 1 + 5)
    expect(s.has).toBe('0123456789')
  })

  it('learns from the server what has become of the last piece when the answer is lost', async () => {
    const { s, send } = server()
    s.fail = [
      () => undefined,
      () => undefined,
      lose((text) => {
        s.has += text
        s.done = true
      }),
    ]
    expect(await send(file())).toEqual({ id: 'fil_1' })
    expect(s.appends).toEqual([0, 4, 8])
  })

  it('asks for the file when all bytes are there and no file is', async () => {
    const { s, send } = server()
    s.has = '0123456789'
    expect(await send(file())).toEqual({ id: 'fil_1' })
    expect(s.appends).toEqual([10])
  })

  it('ends with what does not pass', async () => {
    for (const [status, code] of [
      [507, 'disk_full'],
      [404, 'upload_not_found'],
      [503, 'upload_elsewhere'],
      [401, 'unauthenticated'],
    ] as const) {
      const { s, send } = server()
      s.fail = [lose(() => undefined, new Problem(status, { code }))]
      await expect(send(file())).rejects.toMatchObject({ code })
      expect(s.waits).toBe(0)
    }
  })

  it('ends when it is stopped', async () => {
    const { s, send, control } = server()
    s.fail = [lose(() => control.abort())]
    await expect(send(file())).rejects.toMatchObject({ code: 'aborted' })
    expect(s.looks).toBe(0)
  })
})
