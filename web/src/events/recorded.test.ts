import { describe, expect, it } from 'vitest'
import { blocksOf } from './group'
import { applyTurn, newTurn, steps, type TurnView } from './turn'

// Streams of a real server; record.mjs records them again.

interface Told {
  id: number
  event: Record<string, unknown>
}

const files = import.meta.glob<string>('./recorded/*.jsonl', { query: '?raw', import: 'default', eager: true })

const read = (name: string): Told[] =>
  (files[`./recorded/${name}.jsonl`] ?? '')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Told)

/** A view from events, handed over in parts; after each the reader comes back a few events earlier, as after a broken connection. */
function fold(all: Told[], part: () => number, back: () => number): TurnView {
  const view = newTurn('t')
  for (let at = 0; at < all.length; ) {
    const to = Math.min(all.length, at + part())
    for (const { id, event } of all.slice(Math.max(0, at - back()), to)) applyTurn(view, id, structuredClone(event))
    at = to
  }
  return view
}

const content = (view: TurnView) => JSON.stringify(view, (key, value) => (key === 'version' ? 0 : value))

/** Numbers that look random and are the same each time. */
function numbers(seed: number) {
  let x = seed
  return (most: number) => {
    x = (x * 1103515245 + 12345) % 2147483648
    return x % most
  }
}

describe.each(['plain', 'repaired', 'tqdm', 'table', 'stopped', 'lost', 'approval'])('the stream "%s"', (name) => {
  const all = read(name)
  const one = fold(
    all,
    () => 1,
    () => 0,
  )

  it('comes to the same whatever parts it comes in', () => {
    for (let seed = 1; seed <= 50; seed++) {
      const random = numbers(seed)
      const view = fold(
        all,
        () => 1 + random(20),
        () => random(6),
      )
      expect(content(view)).toBe(content(one))
    }
  })

  it('ends', () => {
    expect(one.state).toBe(name === 'stopped' ? 'failed' : 'answered')
    for (const step of steps(one)) {
      expect(['ok', 'failed']).toContain(step.state)
      expect(step.installing).toBeNull()
    }
  })
})

describe('what recorded streams tell', () => {
  const view = (name: string) =>
    fold(
      read(name),
      () => 1,
      () => 0,
    )
  const written = (name: string) =>
    steps(view(name))
      .flatMap((s) => s.items)
      .map((i) => (i.type === 'stream' ? i.text : ''))
      .join('')

  it('output and files', () => {
    expect(written('plain')).toContain('x is 42')
    expect(steps(view('plain'))[0]?.files).toEqual([{ path: 'x.txt', size: 2, created: true }])
    expect(written('tqdm')).toContain('\r100%')
    expect(JSON.stringify(steps(view('table'))[0]?.items)).toContain('application/vnd.cove.table+json')
  })
  it('an attempt that was repaired', () => {
    const groups = blocksOf(view('repaired')).work.flatMap((b) => (b.kind === 'group' ? [b] : []))
    expect(groups.map((g) => g.attempts.map((a) => a.error?.name))).toContainEqual(['KeyError'])
    expect(blocksOf(view('repaired')).answer).toContain('Overseas grew fastest')
  })
  it('that it was stopped, and what had come', () => {
    expect(view('stopped').failure?.code).toBe('canceled')
    expect(written('stopped')).toContain('begun')
    expect(steps(view('stopped'))[0]?.done?.outcome).toBe('interrupted')
  })
  it('that variables are lost', () => {
    expect(steps(view('lost'))[0]?.done?.lost).toBe('kernel')
  })
  it('that the code was changed before it ran', () => {
    expect(steps(view('approval'))[0]).toMatchObject({ state: 'ok', edited: true })
    expect(written('approval')).toBe('as it was changed\n')
  })
})
