import { expect, test } from 'vitest'
import { characters, units } from './typing'

test('places are counted as Python counts them', () => {
  const code = "s = '😀é'; s.up"
  expect(characters(code, code.length)).toBe([...code].length)
  expect(characters(code, 7)).toBe(6)
  expect(units(code, 6)).toBe(7)
  expect(units(code, [...code].length)).toBe(code.length)
  expect(units(code, 1000)).toBe(code.length)
})
