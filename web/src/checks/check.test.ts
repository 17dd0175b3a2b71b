import { expect, test } from 'vitest'

import { recent } from './check'

test('sends the programs before one as far as there is room', () => {
  const small = Array.from({ length: 120 }, (_, n) => `x = ${n}`)
  expect(recent(small, 'x')).toEqual(small.slice(20))
  expect(recent([], 'x')).toEqual([])

  const large = ['a'.repeat(200_000), 'b'.repeat(200_000), 'c'.repeat(90_000)]
  expect(recent(large, 'x')).toEqual(large.slice(1))
  expect(recent(large, 'x'.repeat(150_000))).toEqual(large.slice(2))
  expect(recent(large, 'x'.repeat(400_000))).toEqual([])
})
