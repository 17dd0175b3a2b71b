import type { Part, StepView, TurnView } from './turn'

/** A step with the attempts before it that failed. */
export interface Group {
  kind: 'group'
  step: StepView
  attempts: StepView[]
}

export type Block = Exclude<Part, { kind: 'step' }> | Group

/** What a turn shows: failed steps go into the one that repaired them, the last words are the answer. */
export function blocksOf(view: TurnView): { work: Block[]; answer: string } {
  const work: Block[] = []
  let failed: Group | null = null
  const at = view.parts.findLastIndex((p) => p.kind === 'step')
  const rest = view.parts.slice(at + 1)
  for (const part of view.parts.slice(0, at + 1)) {
    if (part.kind !== 'step') {
      work.push(part)
      continue
    }
    const { step } = part
    if (failed && step.state === 'ok') {
      // It takes the place of the last attempt; what was said between them stays before it.
      work.splice(work.indexOf(failed), 1)
      work.push({ kind: 'group', step, attempts: [...failed.attempts, failed.step] })
      failed = null
      continue
    }
    const group: Group = { kind: 'group', step, attempts: [] }
    if (step.state === 'failed') {
      if (failed) {
        group.attempts = [...failed.attempts, failed.step]
        work.splice(work.indexOf(failed), 1)
      }
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

/** A step's name: its first comment, or its first line of code. */
export function nameOf(code: string): string {
  for (const line of code.split('\n')) {
    const said = line.trim()
    if (!said || said.startsWith('#!') || said.startsWith('%')) continue
    if (said.startsWith('# ///')) continue
    const words = said.startsWith('#') ? said.replace(/^#+\s*/, '') : said
    if (words) return words.length > 90 ? `${words.slice(0, 89)}…` : words
  }
  return ''
}

const pictures = [
  'image/png',
  'image/jpeg',
  'image/svg+xml',
  'image/gif',
  'image/webp',
  'application/vnd.plotly.v1+json',
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
