import { describe, expect, it } from 'vitest'
import { applyExecution, newExecution } from './execution'
import { blocksOf, isFigure, lastFailed } from './group'
import { applyTurn, endOf, newTurn, steps, type TurnView } from './turn'

type Event = Record<string, unknown>

const recorded: Event[] = [
  { type: 'reasoning', delta: 'Look ' },
  { type: 'reasoning', delta: 'first.' },
  { type: 'text', delta: 'I will ' },
  { type: 'text', delta: 'read it.' },
  { type: 'code', step: 1, delta: '# Read\nimport' },
  { type: 'code', step: 1, delta: ' pandas' },
  { type: 'start', step: 1, code: '# Read\nimport pandas' },
  { type: 'output', step: 1, event: { type: 'install_progress', phase: 'download', packages: ['x'] } },
  { type: 'output', step: 1, event: { type: 'stream', name: 'stdout', text: 'a' } },
  { type: 'output', step: 1, event: { type: 'file', path: 'a.csv', size: 1, created: true } },
  { type: 'output', step: 1, event: { type: 'file', path: 'a.csv', size: 2, created: false } },
  { type: 'output', step: 1, event: { type: 'done', outcome: 'ok', exit_code: 0, seconds: 0.2 } },
  { type: 'code', step: 2, delta: 'g = d' },
  { type: 'start', step: 2, code: 'g = df["umsatz"]' },
  { type: 'output', step: 2, event: { type: 'error', name: 'KeyError', value: "'umsatz'", traceback: [] } },
  { type: 'output', step: 2, event: { type: 'done', outcome: 'error', exit_code: 1, seconds: 0.1 } },
  { type: 'text', delta: 'Another name.' },
  { type: 'code', step: 3, delta: 'half' },
  { type: 'notice', text: 'The answer broke off and is asked for again.' },
  { type: 'code', step: 3, delta: 'g = df["revenue"]' },
  { type: 'start', step: 3, code: 'g = df["revenue"]' },
  { type: 'output', step: 3, event: { type: 'display', data: { 'image/png': 'AA==' }, metadata: {} } },
  { type: 'output', step: 3, event: { type: 'done', outcome: 'ok', exit_code: 0, seconds: 0.3 } },
  { type: 'text', delta: 'Over' },
  { type: 'text', delta: 'seas.' },
  { type: 'answer', text: 'Overseas.', reason: 'complete', steps: 3, usage: { input_tokens: 10, output_tokens: 5 } },
]

function play(view: TurnView, from: number, to: number) {
  for (let i = from; i < to; i++) applyTurn(view, i + 1, structuredClone(recorded[i] as Event))
}

function whole() {
  const view = newTurn('t')
  play(view, 0, recorded.length)
  return view
}

const content = (view: TurnView) =>
  JSON.stringify({ ...view, version: 0 }, (key, value) => (key === 'version' ? 0 : value))

describe('the events of a turn', () => {
  it('become steps, words and an answer', () => {
    const view = whole()
    expect(view.state).toBe('answered')
    expect(view.tokens).toEqual({ input: 10, output: 5 })
    expect(steps(view).map((s) => [s.number, s.state, s.code])).toEqual([
      [1, 'ok', '# Read\nimport pandas'],
      [2, 'failed', 'g = df["umsatz"]'],
      [3, 'ok', 'g = df["revenue"]'],
    ])
    expect(steps(view)[0]?.files).toEqual([{ path: 'a.csv', size: 2, created: true }])
    expect(steps(view)[0]?.installing).toBeNull()
    expect(view.parts.at(-1)).toEqual({ kind: 'text', text: 'Overseas.' })
  })

  it('are the same when the stream is cut anywhere and some come twice', () => {
    const expected = content(whole())
    for (let cut = 0; cut <= recorded.length; cut++) {
      for (const back of [0, 1, 3, cut]) {
        const view = newTurn('t')
        play(view, 0, cut)
        play(view, Math.max(0, cut - back), recorded.length)
        expect(content(view)).toBe(expected)
      }
    }
  })

  it('keep the identity of what does not change', () => {
    const view = newTurn('t')
    play(view, 0, 12)
    const first = steps(view)[0]
    const version = first?.version
    play(view, 12, recorded.length)
    expect(steps(view)[0]).toBe(first)
    expect(first?.version).toBe(version)
  })

  it('say what is new', () => {
    const view = newTurn('t')
    expect(applyTurn(view, 1, { type: 'text', delta: 'a' })).toBe(true)
    expect(applyTurn(view, 1, { type: 'text', delta: 'a' })).toBe(false)
    expect(applyTurn(view, 0, { type: 'turn', turn: {} })).toBe(false)
    expect(applyTurn(view, 2, { type: 'something new' })).toBe(false)
    expect(view.last).toBe(2)
  })

  it('end a step that never ended', () => {
    const view = newTurn('t')
    play(view, 0, 9)
    applyTurn(view, 10, { type: 'failure', kind: 'canceled', code: 'canceled', message: 'stopped', hint: 'ask again' })
    expect(view.state).toBe('failed')
    expect(view.failure?.hint).toBe('ask again')
    expect(steps(view)[0]?.state).toBe('failed')
    expect(steps(view)[0]?.items).toHaveLength(1)
  })

  it('survive nonsense', () => {
    const view = newTurn('t')
    const odd: Event[] = [
      { type: 'code' },
      { type: 'start', step: 'x', code: 5 },
      { type: 'output', step: 1 },
      { type: 'output', step: 1, event: 'text' },
      { type: 'output', step: 1, event: { type: 'file' } },
      { type: 'answer', usage: null },
    ]
    odd.forEach((event, i) => {
      applyTurn(view, i + 1, event)
    })
    expect(view.state).toBe('answered')
  })
})

describe('code that waits for its person', () => {
  const begun: Event[] = [
    { type: 'code', step: 1, delta: 'x =' },
    { type: 'approval', step: 1, code: 'x = 1' },
  ]
  const viewAfter = (...events: Event[]) => {
    const view = newTurn('t')
    ;[...begun, ...events].forEach((event, i) => {
      applyTurn(view, i + 1, event)
    })
    return view
  }

  it('waits, and runs as it was changed', () => {
    expect(steps(viewAfter())[0]).toMatchObject({ state: 'waiting', code: 'x = 1', edited: false })
    const view = viewAfter({ type: 'start', step: 1, code: 'x = 2', edited: true })
    expect(steps(view)[0]).toMatchObject({ state: 'running', code: 'x = 2', edited: true })
  })

  it('stays to be read when it was refused, and is no failed attempt of the next', () => {
    const view = viewAfter(
      { type: 'refused', step: 1, note: 'too slow' },
      { type: 'start', step: 2, code: 'y = 1' },
      { type: 'output', step: 2, event: { type: 'done', outcome: 'ok', exit_code: 0, seconds: 0 } },
    )
    expect(steps(view).map((s) => [s.state, s.note])).toEqual([
      ['refused', 'too slow'],
      ['ok', ''],
    ])
    expect(blocksOf(view).work.filter((b) => b.kind === 'group' && b.attempts.length)).toEqual([])
  })

  it('does not wait any more when the turn was stopped', () => {
    const view = viewAfter({ type: 'failure', kind: 'canceled', code: 'turn_canceled', message: '', hint: '' })
    expect(steps(view)[0]?.state).toBe('failed')
  })
})

describe('what a turn shows', () => {
  it('puts the failed attempt into the step that repaired it', () => {
    const { work, answer } = blocksOf(whole())
    expect(answer).toBe('Overseas.')
    const groups = work.filter((b) => b.kind === 'group')
    expect(groups).toHaveLength(2)
    expect(groups[1]?.attempts.map((s) => s.number)).toEqual([2])
  })

  it('shows a failed step by itself while nothing has repaired it', () => {
    const view = newTurn('t')
    play(view, 0, 18)
    const groups = blocksOf(view).work.filter((b) => b.kind === 'group')
    expect(groups.map((g) => g.step.number)).toEqual([1, 2, 3])
  })

  it('keeps what was said beside the step that it was said of', () => {
    const { work } = blocksOf(whole())
    expect(work.map((b) => (b.kind === 'group' ? b.step.number : b.kind))).toEqual(['reasoning', 'text', 1, 3])
    const last = work.at(-1)
    expect(last?.kind === 'group' && last.said[0]?.[0]).toEqual({ kind: 'text', text: 'Another name.' })
  })

  it('leaves refused code between attempts where it is', () => {
    const view = newTurn('t')
    const failed = { type: 'done', outcome: 'error', exit_code: 1, seconds: 0 }
    const events: Event[] = [
      { type: 'start', step: 1, code: 'a' },
      { type: 'output', step: 1, event: failed },
      { type: 'text', delta: 'after one' },
      { type: 'approval', step: 2, code: 'b' },
      { type: 'refused', step: 2, note: '' },
      { type: 'text', delta: 'after two' },
      { type: 'start', step: 3, code: 'c' },
      { type: 'output', step: 3, event: failed },
      { type: 'text', delta: 'It cannot be read.' },
      { type: 'answer', text: 'It cannot be read.', reason: 'complete' },
    ]
    events.forEach((event, i) => {
      applyTurn(view, i + 1, event)
    })
    const { work, answer } = blocksOf(view)
    expect(work.map((b) => (b.kind === 'group' ? b.step.number : b.kind))).toEqual([2, 'text', 3])
    expect(answer).toBe('It cannot be read.')
    expect(lastFailed(work)?.number).toBe(3)
    expect(lastFailed(blocksOf(whole()).work)).toBeNull()
  })

  it('says how it ended', () => {
    const end = (event: Event) => {
      const view = newTurn('t')
      applyTurn(view, 1, event)
      return endOf(view)
    }
    expect(end({ type: 'answer', text: 'x', reason: 'complete' })).toBe('complete')
    expect(end({ type: 'answer', text: 'x', reason: 'step_limit' })).toBe('cut')
    expect(end({ type: 'failure', code: 'canceled' })).toBe('stopped')
    expect(end({ type: 'failure', code: 'turn_lost' })).toBe('lost')
    expect(end({ type: 'failure', code: 'provider_failed' })).toBe('failed')
  })

  it('tells a lost server once', () => {
    const view = newTurn('t')
    applyTurn(view, 1, { type: 'start', step: 1, code: 'x' })
    applyTurn(view, 2, { type: 'output', step: 1, event: { type: 'stream', name: 'stdout', text: 'a' } })
    applyTurn(view, 3, { type: 'output', step: 1, event: { type: 'done', outcome: 'lost', lost: 'session' } })
    expect(steps(view)[0]?.items.map((i) => i.type)).toEqual(['stream'])
    expect(steps(view)[0]?.done?.outcome).toBe('lost')
  })

  it('knows figures', () => {
    expect(isFigure({ type: 'display', data: { 'image/png': '' } })).toBe(true)
    expect(isFigure({ type: 'result', data: { 'text/plain': '' } })).toBe(false)
    expect(isFigure({ type: 'stream' })).toBe(false)
  })
})

describe('the events of an execution', () => {
  it('are taken once', () => {
    const view = newExecution('1')
    const events: Event[] = [
      { type: 'stream', name: 'stdout', text: 'a' },
      { type: 'result', count: 1, data: { 'text/plain': '1' } },
      { type: 'done', outcome: 'ok', exit_code: 0, seconds: 0 },
    ]
    for (const times of [1, 2])
      for (const [i, event] of events.entries()) expect(applyExecution(view, i + 1, event)).toBe(times === 1)
    expect(view.items).toHaveLength(3)
    expect(view.state).toBe('ok')
  })
})

it('findings of a check belong to their step, and are taken with care', () => {
  const view = newTurn('x')
  applyTurn(view, 0, { type: 'start', step: 1, code: 'x' })
  applyTurn(view, 0, {
    type: 'findings',
    step: 1,
    items: [
      { rule: 'slow-iterrows', severity: 'warning', line: 2, column: 1, message: 'm', better: 'b' },
      7,
      { severity: 'odd' },
    ],
    notes: ['n', {}],
  })
  expect(steps(view)[0]?.findings).toEqual({
    items: [
      { rule: 'slow-iterrows', severity: 'warning', line: 2, column: 1, message: 'm', better: 'b' },
      { rule: '', severity: 'note', line: 0, column: 0, message: '' },
      { rule: '', severity: 'note', line: 0, column: 0, message: '' },
    ],
    notes: ['n', ''],
  })
})
