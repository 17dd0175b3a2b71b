import { expect, it } from 'vitest'
import type { Schemas } from '../../api/client'
import { byModel, quantile } from './answers'

const day = (model: string, turns: number, within: number[]) =>
  ({
    model,
    turns,
    completed: turns,
    repaired: 1,
    failed: 0,
    steps: 2,
    failed_steps: 1,
    installs: 0,
    within,
  }) as Schemas['AnswerDay']

it('sums the days of each model', () => {
  const rows = byModel([day('a', 1, [1]), day('b', 5, [0, 5]), day('a', 2, [0, 0, 2])])
  expect(rows.map((r) => [r.model, r.turns, r.repaired, r.within])).toEqual([
    ['b', 5, 1, [0, 5]],
    ['a', 3, 2, [1, 0, 2]],
  ])
})

it('finds how long a part of the turns took', () => {
  const within = [10, 0, 80, 5, 0, 0, 0, 0, 0, 0, 5]
  expect([0.1, 0.5, 0.95, 0.99].map((part) => quantile(within, part))).toEqual([1, 4, 8, 1024])
  expect(quantile([], 0.5)).toBe(0)
})
