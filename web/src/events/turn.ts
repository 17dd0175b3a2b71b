import type { Schemas } from '../api/client'
import type { DoneEvent, OutputEvent, ProgressEvent } from '../output'

type Finding = Schemas['Finding']

export type StepState = 'writing' | 'waiting' | 'running' | 'ok' | 'failed' | 'refused'

/** One execution of a turn, as far as its events tell. `items` only grows, so that readers can go on where they were. */
export interface StepView {
  number: number
  code: string
  state: StepState
  items: OutputEvent[]
  files: { path: string; size: number; created: boolean }[]
  installing: ProgressEvent | null
  error: { name: string; value: string } | null
  done: DoneEvent | null
  /** The person changed the model's code before it ran. */
  edited: boolean
  /** What the person told the model instead of letting it run. */
  note: string
  /** What in the code calls for a look, where rules ask or refuse; or "". */
  why: string
  /** What a check of the code found, where the turn asked for one. */
  findings: { items: Finding[]; notes: string[] } | null
  /** How many lines it waits for. */
  asks?: number
  /** Events that the server does not keep. */
  gap: boolean
  version: number
}

export type Part =
  | { kind: 'text'; text: string }
  | { kind: 'reasoning'; text: string }
  | { kind: 'notice'; text: string }
  | { kind: 'step'; step: StepView }

export interface Failure {
  kind: string
  code: string
  message: string
  hint: string
}

export interface Tokens {
  input: number
  output: number
}

/** What is known of a turn. It is changed in place by applyTurn; `version` says that it was. */
export interface TurnView {
  id: string
  last: number
  parts: Part[]
  state: 'running' | 'answered' | 'failed'
  answer: string
  reason: string
  tokens: Tokens | null
  failure: Failure | null
  version: number
}

export const newTurn = (id: string): TurnView => ({
  id,
  last: 0,
  parts: [],
  state: 'running',
  answer: '',
  reason: '',
  tokens: null,
  failure: null,
  version: 0,
})

const newStep = (number: number): StepView => ({
  number,
  code: '',
  state: 'writing',
  items: [],
  files: [],
  installing: null,
  error: null,
  done: null,
  edited: false,
  note: '',
  why: '',
  findings: null,
  gap: false,
  version: 0,
})

const text = (value: unknown): string => (typeof value === 'string' ? value : '')
const number = (value: unknown): number => (typeof value === 'number' && Number.isFinite(value) ? value : 0)
const record = (value: unknown): Record<string, unknown> =>
  value && typeof value === 'object' ? (value as Record<string, unknown>) : {}

export const steps = (view: TurnView): StepView[] => view.parts.flatMap((p) => (p.kind === 'step' ? [p.step] : []))

function stepOf(view: TurnView, n: number): StepView {
  for (let i = view.parts.length - 1; i >= 0; i--) {
    const part = view.parts[i]
    if (part?.kind === 'step' && part.step.number === n) return part.step
  }
  const step = newStep(n)
  view.parts.push({ kind: 'step', step })
  return step
}

function say(view: TurnView, kind: 'text' | 'reasoning', delta: string) {
  if (!delta) return
  const at = view.parts.length - 1
  const last = view.parts[at]
  // A new object, so that what shows the part sees the change; the parts before it stay as they are.
  if (last?.kind === kind) view.parts[at] = { kind, text: last.text + delta }
  else view.parts.push({ kind, text: delta })
}

const mostFindings = 2000

function findingsOf(event: Record<string, unknown>): StepView['findings'] {
  const list = (value: unknown): unknown[] => (Array.isArray(value) ? value.slice(0, mostFindings) : [])
  const items = list(event.items).map((item): Finding => {
    const f = record(item)
    const severity = f.severity === 'error' || f.severity === 'warning' ? f.severity : 'note'
    const better = text(f.better)
    return {
      rule: text(f.rule),
      severity,
      line: number(f.line),
      column: number(f.column),
      message: text(f.message),
      ...(better ? { better } : {}),
    }
  })
  return { items, notes: list(event.notes).map(text) }
}

/** How a turn ended: with an answer, with one that came too early, or without. */
export type End = 'complete' | 'cut' | 'stopped' | 'lost' | 'failed'

export function endOf({ state, failure, reason }: Pick<TurnView, 'state' | 'failure' | 'reason'>): End {
  if (state !== 'failed') return reason && reason !== 'complete' ? 'cut' : 'complete'
  if (failure?.code === 'canceled' || failure?.code === 'turn_canceled') return 'stopped'
  return failure?.code === 'turn_lost' ? 'lost' : 'failed'
}

/** Takes one event of an execution into a step. */
export function applyOutput(step: StepView, event: Record<string, unknown>) {
  step.version++
  if (event.type !== 'install_progress') step.installing = null
  switch (event.type) {
    case 'install_progress':
      step.installing = event as unknown as ProgressEvent
      return
    case 'file': {
      const path = text(event.path)
      const at = step.files.findIndex((f) => f.path === path)
      const file = {
        path,
        size: number(event.size),
        created: event.created === true || (at >= 0 && step.files[at]?.created === true),
      }
      if (at >= 0) step.files[at] = file
      else if (path) step.files.push(file)
      break
    }
    case 'error':
      step.error = { name: text(event.name), value: text(event.value) }
      break
    case 'input_request':
      step.asks = (step.asks ?? 0) + 1
      break
    case 'input_reply':
      step.asks = Math.max(0, (step.asks ?? 0) - 1)
      break
    case 'done':
      step.asks = 0
      step.done = event as unknown as DoneEvent
      step.state = event.outcome === 'ok' ? 'ok' : 'failed'
      break
  }
  step.items.push(event as unknown as OutputEvent)
}

/** An answer that broke off is asked for again: the code that was being written is written anew. */
function forgetUnfinished(view: TurnView) {
  view.parts = view.parts.filter((p) => p.kind !== 'step' || p.step.state !== 'writing')
}

function end(view: TurnView) {
  forgetUnfinished(view)
  for (const step of steps(view)) {
    if (step.state === 'running' || step.state === 'waiting') {
      step.state = 'failed'
      step.version++
    }
    step.installing = null
  }
}

function answer(view: TurnView, event: Record<string, unknown>) {
  end(view)
  const usage = record(event.usage)
  view.state = 'answered'
  view.answer = text(event.text)
  view.reason = text(event.reason)
  view.tokens = { input: number(usage.input_tokens), output: number(usage.output_tokens) }
  // The answer's own text is what holds, whatever was said twice on the way.
  const from = view.parts.findLastIndex((p) => p.kind === 'step') + 1
  const rest = view.parts.slice(from).filter((p) => p.kind !== 'text')
  view.parts = [...view.parts.slice(0, from), ...rest]
  if (view.answer) view.parts.push({ kind: 'text', text: view.answer })
}

/** Takes an event into the view, and says whether it was news. Events with ids that came before are not. */
export function applyTurn(view: TurnView, id: number, event: Record<string, unknown>): boolean {
  if (id > 0) {
    if (id <= view.last) return false
    view.last = id
  }
  if (view.state !== 'running') return false
  switch (event.type) {
    case 'text':
    case 'reasoning':
      say(view, event.type, text(event.delta))
      break
    case 'code': {
      const step = stepOf(view, number(event.step))
      if (step.state === 'writing') step.code += text(event.delta)
      step.version++
      break
    }
    case 'start': {
      const step = stepOf(view, number(event.step))
      step.code = text(event.code)
      step.state = 'running'
      step.edited = event.edited === true
      step.version++
      break
    }
    case 'approval': {
      const step = stepOf(view, number(event.step))
      step.code = text(event.code)
      step.state = 'waiting'
      step.why = text(event.why)
      step.version++
      break
    }
    case 'refused': {
      const step = stepOf(view, number(event.step))
      step.state = 'refused'
      step.note = text(event.note)
      step.why = text(event.why)
      step.version++
      break
    }
    case 'findings': {
      const step = stepOf(view, number(event.step))
      step.findings = findingsOf(event)
      step.version++
      break
    }
    case 'output': {
      const step = stepOf(view, number(event.step))
      applyOutput(step, record(event.event))
      // That the server was lost is told once, at the end of the turn.
      if (step.done?.outcome === 'lost') step.items = step.items.filter((i) => i.type !== 'done')
      break
    }
    case 'notice':
      forgetUnfinished(view)
      view.parts.push({ kind: 'notice', text: text(event.text) })
      break
    case 'gap':
      for (const step of steps(view).slice(-1)) {
        step.gap = true
        step.version++
      }
      break
    case 'answer':
      answer(view, event)
      break
    case 'failure':
      end(view)
      view.state = 'failed'
      view.failure = {
        kind: text(event.kind),
        code: text(event.code),
        message: text(event.message),
        hint: text(event.hint),
      }
      break
    default:
      return false
  }
  view.version++
  return true
}
