import { expect, it } from 'vitest'
import { isStale } from './reruns'

const all = (o: Record<string, number>) => new Map(Object.entries(o).map(([id, at]) => [id, { at, execution: 'exe' }]))

it('marks the steps behind one that ran again', () => {
  const turns = ['t1', 't2', 't3']
  const ran = all({ 't2/2': 1 })
  expect(['t1/1', 't2/1', 't2/2', 't2/3', 't3/1'].filter((id) => isStale(id, turns, ran))).toEqual(['t2/3', 't3/1'])
})

it('marks nothing that ran since, and nothing of another branch', () => {
  const turns = ['t1', 't2']
  expect(isStale('t2/1', turns, all({ 't1/1': 1, 't2/1': 2 }))).toBe(false)
  expect(isStale('t2/1', turns, all({ 't1/1': 3, 't2/1': 2 }))).toBe(true)
  expect(isStale('t2/1', turns, all({ 'other/1': 9 }))).toBe(false)
  expect(isStale('t2/1', turns, new Map([['t1/1', { at: 4, execution: '' }]]))).toBe(false)
})
