import { applyOutput, type StepView } from './turn'

/** An execution by itself, as in the notebook: a step without a turn. */
export interface ExecutionView extends StepView {
  last: number
}

export const newExecution = (code: string): ExecutionView => ({
  number: 0,
  code,
  state: 'running',
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
  last: 0,
})

export function applyExecution(view: ExecutionView, id: number, event: Record<string, unknown>): boolean {
  if (id > 0) {
    if (id <= view.last) return false
    view.last = id
  }
  if (view.done) return false
  if (event.type === 'execution') return false
  if (event.type === 'gap') {
    view.gap = true
    view.version++
    return true
  }
  if (event.type === 'failure') {
    view.error = { name: String(event.code ?? 'failure'), value: String(event.message ?? '') }
    view.state = 'failed'
    view.version++
    return true
  }
  applyOutput(view, event)
  return true
}
