import { expect, it } from 'vitest'
import { blocksOf, noticesIn } from './group'
import { applyTurn, newTurn } from './turn'

it('counts the notices that a folded step has', () => {
  const view = newTurn('t')
  const finding = { severity: 'warning', line: 1, message: 'slow', rule: 'x' }
  for (const event of [
    { type: 'start', step: 1, code: 'a' },
    { type: 'output', step: 1, event: { type: 'error', name: 'NameError', value: 'x' } },
    { type: 'output', step: 1, event: { type: 'done', outcome: 'error' } },
    { type: 'notice', text: 'The answer broke off and is asked for again.' },
    { type: 'text', delta: 'I will try again.' },
    { type: 'start', step: 2, code: 'b' },
    { type: 'output', step: 2, event: { type: 'done', outcome: 'ok' } },
    { type: 'findings', step: 2, items: [finding, finding], notes: [] },
    { type: 'start', step: 3, code: 'c' },
    { type: 'output', step: 3, event: { type: 'done', outcome: 'ok' } },
  ])
    applyTurn(view, 0, event)
  const groups = blocksOf(view).work.flatMap((b) => (b.kind === 'group' ? [b] : []))
  expect(groups.map((g) => [g.step.number, noticesIn(g)])).toEqual([
    [2, 3],
    [3, 0],
  ])
})
