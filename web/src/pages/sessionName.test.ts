import { expect, it } from 'vitest'
import { en } from '../words/en'
import { nameOf } from './sessionName'

const use = (title: string, ...files: string[]) => ({ id: 'cnv_1', title, files })

it('names a session by its name, its conversations, or what it is', () => {
  expect(nameOf({ name: 'lab', conversations: [use('Sales')] }, en).main).toBe('lab')
  expect(nameOf({ name: '', conversations: [use('Sales'), use(' ')] }, en).main).toBe('Sales · Untitled')
  expect(nameOf({ name: '', conversations: ['a', 'b', 'c', 'd'].map((t) => use(t)) }, en).main).toBe('a · b · c · …')
  expect(nameOf({ name: '' }, en)).toEqual({ main: 'Notebook', files: '' })
})

it('says its files once each, and how many more there are', () => {
  const uses = [use('x', 'a.csv', 'b.csv'), use('y', 'a.csv', 'c.csv', 'd.csv', 'e.csv')]
  expect(nameOf({ name: '', conversations: uses }, en).files).toBe('a.csv, b.csv, c.csv and 2 more')
})
