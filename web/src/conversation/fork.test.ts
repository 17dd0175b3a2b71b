import { expect, test } from 'vitest'
import { en } from '../words/en'
import { zh } from '../words/zh'
import { nameOf } from './fork'

test('a fork is called as its origin, and fits', () => {
  expect(nameOf('Sales', en)).toBe('Sales (fork)')
  expect(nameOf('Sales (fork)', en)).toBe('Sales (fork)')
  const long = nameOf('销'.repeat(90), zh)
  expect(new TextEncoder().encode(long).length).toBeLessThanOrEqual(200)
  expect(long.endsWith('（副本）')).toBe(true)
})
