import type { Schemas } from '../../api/client'

type Day = Schemas['AnswerDay']

/** How the answers of one model went in some days together. */
export interface ModelAnswers {
  model: string
  turns: number
  completed: number
  repaired: number
  failed: number
  steps: number
  failed_steps: number
  installs: number
  within: number[]
}

const sums = ['turns', 'completed', 'repaired', 'failed', 'steps', 'failed_steps', 'installs'] as const

/** One row for each model, the one with the most turns first. */
export function byModel(days: readonly Day[]): ModelAnswers[] {
  const all = new Map<string, ModelAnswers>()
  for (const d of days) {
    const row = all.get(d.model)
    if (!row) {
      all.set(d.model, { ...d, within: [...(d.within ?? [])] })
      continue
    }
    for (const name of sums) row[name] += d[name]
    d.within?.forEach((n, i) => {
      row.within[i] = (row.within[i] ?? 0) + n
    })
  }
  return [...all.values()].sort((a, b) => b.turns - a.turns || a.model.localeCompare(b.model))
}

/** The seconds within which a part of the turns ended, from 0 to 1; 1024 stands for all that is longer than 512. */
export function quantile(within: readonly number[], part: number): number {
  const all = within.reduce((sum, n) => sum + n, 0)
  let seen = 0
  for (const [i, n] of within.entries()) {
    seen += n
    if (all && seen >= part * all) return 2 ** i
  }
  return 0
}
