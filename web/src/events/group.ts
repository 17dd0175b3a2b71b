import type { Part, StepView, TurnView } from './turn'

/** A step with the attempts before it that failed. */
export interface Group {
  kind: 'group'
  step: StepView
  attempts: StepView[]
  /** What was said after each of the attempts. */
  said: Between[]
}

type Between = Exclude<Part, { kind: 'step' }>[]

export type Block = Exclude<Part, { kind: 'step' }> | Group

/** What a turn shows: failed steps go into the one that repaired them, the last words are the answer. */
export function blocksOf(view: TurnView): { work: Block[]; answer: string } {
  const work: Block[] = []
  let failed: Group | null = null
  /** Takes a failed step out, with what was said after it: it becomes an attempt of the next. */
  const takeUp = (from: Group): Pick<Group, 'attempts' | 'said'> => {
    const at = work.indexOf(from)
    const next = work.findIndex((b, i) => i > at && b.kind === 'group')
    const [, ...between] = work.splice(at, (next < 0 ? work.length : next) - at) as [Group, ...Between]
    return { attempts: [...from.attempts, from.step], said: [...from.said, between] }
  }
  const at = view.parts.findLastIndex((p) => p.kind === 'step')
  const rest = view.parts.slice(at + 1)
  for (const part of view.parts.slice(0, at + 1)) {
    if (part.kind !== 'step') {
      work.push(part)
      continue
    }
    const { step } = part
    if (failed && step.state === 'ok') {
      work.push({ kind: 'group', step, ...takeUp(failed) })
      failed = null
      continue
    }
    const group: Group = { kind: 'group', step, attempts: [], said: [] }
    if (step.state === 'failed') {
      if (failed) Object.assign(group, takeUp(failed))
      failed = group
    }
    work.push(group)
  }
  let answer = ''
  for (const part of rest) {
    if (part.kind === 'text') answer += (answer ? '\n\n' : '') + part.text
    else if (part.kind !== 'step') work.push(part)
  }
  return { work, answer }
}

/** How many notices are to be read in a step when it is unfolded: what the server said between its attempts, and what a look at its code found. */
export function noticesIn({ step, said }: Pick<Group, 'step' | 'said'>): number {
  const between = said.flat().filter((p) => p.kind === 'notice').length
  return between + (step.findings ? step.findings.items.length + step.findings.notes.length : 0)
}

/** The last step of a turn, when it failed and nothing was run after it: an answer has no result of it. */
export function lastFailed(work: readonly Block[]): StepView | null {
  const last = work.findLast((b) => b.kind === 'group')
  if (last?.kind !== 'group' || last.step.state !== 'failed') return null
  return last.step.done && last.step.done.outcome !== 'interrupted' ? last.step : null
}

const pictures = [
  'image/png',
  'image/jpeg',
  'image/svg+xml',
  'image/gif',
  'image/webp',
  'application/vnd.plotly.v1+json',
  'application/vnd.jupyter.widget-view+json',
]

/** Whether an event shows something that an answer may stand on: a figure. Such stay open when the step is folded. */
export function isFigure(event: { type: string; data?: unknown }): boolean {
  if (event.type !== 'display' && event.type !== 'result') return false
  const data = event.data as Record<string, unknown> | undefined
  if (!data) return false
  const html = data['text/html']
  // What code shows as HTML is what it was for, but for tables: those are looked at on the way.
  if (typeof html === 'string' && !html.includes('class="dataframe"')) return true
  return Object.keys(data).some((mime) => pictures.includes(mime) || mime.startsWith('application/vnd.vega'))
}

/** What of a step's events is shown while it is folded: its figures, with the states of widgets among them. */
export function figuresOf<E extends { type: string; data?: unknown }>(items: readonly E[]): E[] {
  const figures = items.filter(isFigure)
  return figures.some((f) => 'application/vnd.jupyter.widget-view+json' in (f.data as object))
    ? items.filter((e) => e.type === 'widgets' || figures.includes(e))
    : figures
}
