import { expect, it } from 'vitest'
import { nameIn } from './export'

it('takes the name of a file from the answer', () => {
  expect(nameIn('attachment; filename="a b.ipynb"', 'x')).toBe('a b.ipynb')
  expect(nameIn(`attachment; filename="?.md"; filename*=UTF-8''%E5%9C%B0.md`, 'x')).toBe('地.md')
  expect(nameIn(`attachment; filename="b.md"; filename*=UTF-8''%E5`, 'x')).toBe('b.md')
  expect(nameIn(null, 'x')).toBe('x')
})
