import { expect, it } from 'vitest'
import { grouped } from './groups'

const at = (conversation: string, snippet: string, field: 'answer' | 'code' = 'answer') => ({
  at: '',
  conversation,
  field,
  snippet,
})

it('has each conversation once, with its other places', () => {
  const groups = grouped([at('a', '1'), at('b', '2'), at('a', '3'), at('a', '4', 'code')])
  expect(groups.map((g) => [g.id, g.more.length])).toEqual([
    ['a', 2],
    ['b', 0],
  ])
})

it('tells a fork with what it was made of', () => {
  const groups = grouped([at('a', '1'), at('a', '2'), at('fork', '1'), at('fork', '2'), at('c', '1', 'code')])
  expect(groups.map((g) => [g.id, g.copies])).toEqual([
    ['a', ['fork']],
    ['c', []],
  ])
  expect(grouped([{ at: '', session: 's', field: 'code', snippet: 'x' }])[0]?.id).toBe('s')
  expect(grouped([])).toEqual([])
})
