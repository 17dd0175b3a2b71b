import { expect, it } from 'vitest'
import { en } from '../../words/en'
import { zh } from '../../words/zh'
import { grouped, withOrigins } from './groups'

const at = (conversation: string, snippet: string, field: 'answer' | 'code' = 'answer') => ({
  at: '',
  conversation,
  field,
  snippet,
})

const none = () => undefined
const forks: Record<string, string> = { fork: 'a', grandchild: 'fork', orphan: 'gone', other: 'gone', x: 'y', y: 'x' }
const originOf = (id: string) => forks[id]
const of = (list: { conversation?: string }[]) => list.map((f) => f.conversation)

it('has each conversation once, with its other places', () => {
  const groups = grouped([at('a', '1'), at('b', '2'), at('a', '3'), at('a', '4', 'code')], none)
  expect(groups.map((g) => [g.first.conversation, g.more.length])).toEqual([
    ['a', 2],
    ['b', 0],
  ])
})

it('tells a fork with what it was made of, and leaves out nothing that it alone has', () => {
  const hits = [at('a', '1'), at('fork', '1'), at('fork', '2'), at('grandchild', '1'), at('grandchild', '2')]
  const [group, ...others] = grouped([...hits, at('c', '1')], originOf)
  expect(group?.first.conversation).toBe('a')
  expect([group?.more.map((f) => f.snippet), of(group?.more ?? [])]).toEqual([['2'], ['fork']])
  expect(of(group?.copies ?? [])).toEqual(['fork', 'grandchild'])
  expect(others.map((g) => g.first.conversation)).toEqual(['c'])
})

it('never takes two conversations for copies that say the same', () => {
  const groups = grouped([at('a', '1'), at('b', '1')], none)
  expect(groups.map((g) => [g.first.conversation, g.copies])).toEqual([
    ['a', []],
    ['b', []],
  ])
})

it('knows forks of a conversation that is not there any more, and ends in circles', () => {
  expect(grouped([at('orphan', '1'), at('other', '1')], originOf)).toHaveLength(1)
  expect(grouped([at('x', '1'), at('x', '2')], originOf)).toHaveLength(1)
  expect(grouped([{ at: '', session: 's', field: 'code', snippet: 'x' }], none)[0]?.id).toBe('s')
  expect(grouped([], none)).toEqual([])
})

it('asks for what forks are of, too', () => {
  expect(withOrigins(['grandchild', 'c'], originOf)).toEqual(['grandchild', 'c', 'fork', 'a'])
  expect(withOrigins(['x'], originOf)).toEqual(['x', 'y'])
})

it('calls no conversation a copy: the first of a group may be the fork, and another the original', () => {
  const [group] = grouped([at('fork', '1'), at('a', '1')], originOf)
  expect([group?.first.conversation, of(group?.copies ?? [])]).toEqual(['fork', ['a']])
  expect(en.find.copies(1)).toBe('Also in 1 related conversation:')
  expect(en.find.copies(2)).toBe('Also in 2 related conversations:')
  expect(zh.find.copies(1)).toBe('另见 1 个相关对话：')
})
