import { describe, expect, it } from 'vitest'
import { type Change, Channel, type Link, type Listener, type Refusal } from './channel'

/** A server whose streams the test writes. */
function server() {
  const opened: { follow: string[]; signal: AbortSignal; write: (event: object) => void; end: () => void }[] = []
  const changes: Change[] = []
  let refusal: Refusal | null = null
  const channel = new Channel({
    changed: (change) => changes.push(change),
    open: async (follow, signal) => {
      if (refusal) throw refusal
      const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
      const writer = writable.getWriter()
      const write = (event: object) =>
        void writer.write(new TextEncoder().encode(`data: ${JSON.stringify(event)}\n\n`)).catch(() => undefined)
      opened.push({ follow, signal, write, end: () => void writer.close().catch(() => undefined) })
      return new Response(readable)
    },
  })
  return { channel, opened, changes, refuse: (r: Refusal) => (refusal = r) }
}

function listener(of: string, at = 0) {
  const got: number[] = []
  const links: Link[] = []
  const l: Listener = {
    of,
    at,
    ends: ['answer', 'failure'],
    said: (said) => got.push(...said.map((s) => s.id)),
    link: (link) => links.push(link),
  }
  return { l, got, links }
}

const text = (of: string, id: number, type = 'text') => ({ type: 'followed', of, id, event: { type } })

const until = async (f: () => boolean) => {
  for (let n = 0; n < 500 && !f(); n++) await new Promise((done) => setTimeout(done, 10))
  expect(f()).toBe(true)
}

describe('a channel', () => {
  it('brings changes, and each listener what it does not have', async () => {
    const s = server()
    const early = listener('trn_1')
    s.channel.start()
    s.channel.add(early.l)
    await until(() => s.opened.length === 1)
    expect(s.opened[0]?.follow).toEqual(['trn_1'])
    s.opened[0]?.write({ type: 'changed', kind: 'turn', id: 'trn_9' })
    for (const id of [1, 2, 3]) s.opened[0]?.write(text('trn_1', id))
    await until(() => early.got.length === 3)
    expect(s.changes).toHaveLength(1)

    // One that has the first two events needs the third again: the stream begins anew, and nobody gets anything twice.
    const late = listener('trn_1', 2)
    s.channel.add(late.l)
    await until(() => s.opened.length === 2)
    expect(s.opened[0]?.signal.aborted).toBe(true)
    expect(s.opened[1]?.follow).toEqual(['trn_1:2'])
    s.opened[1]?.write(text('trn_1', 3))
    s.opened[1]?.write(text('trn_1', 4, 'answer'))
    await until(() => late.links.includes('over'))
    expect([early.got, late.got]).toEqual([
      [1, 2, 3, 4],
      [3, 4],
    ])
    expect(early.links.at(-1)).toBe('over')
    s.channel.stop()
  })

  it('goes on where it was when the stream breaks off, or a part of it is cut', async () => {
    const s = server()
    const one = listener('exe_1')
    const two = listener('trn_2', 7)
    s.channel.start()
    s.channel.add(one.l)
    s.channel.add(two.l)
    await until(() => s.opened.length === 1)
    expect(s.opened[0]?.follow).toEqual(['exe_1', 'trn_2:7'])
    s.opened[0]?.write(text('exe_1', 1))
    await until(() => one.got.length === 1)
    s.opened[0]?.end()
    await until(() => s.opened.length === 2)
    expect(s.opened[1]?.follow).toEqual(['exe_1:1', 'trn_2:7'])
    expect(one.links).toContain('waiting')
    s.opened[1]?.write({ type: 'followed', of: 'trn_2', id: 0, event: { type: 'failure', code: 'stream_cut' } })
    await until(() => s.opened.length === 3)
    expect(two.links).not.toContain('over')
    s.channel.stop()
    expect(s.opened[2]?.signal.aborted).toBe(true)
  })

  it('says when it is of no use to try again', async () => {
    const s = server()
    s.refuse({ status: 401, detail: 'sign in' })
    const one = listener('trn_1')
    s.channel.start()
    s.channel.add(one.l)
    await until(() => one.links.includes('failed'))
    s.channel.stop()
  })
})
