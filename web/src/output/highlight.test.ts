import { expect, it } from 'vitest'
import { Highlighter } from './highlight'

const code =
  'import pandas as pd\n\ndef f(x):\n    """doc\n    string"""\n    return x + 1.5  # why\n\nprint(f("a"), None)\n'

it('gives the text back, with names', () => {
  const lines = new Highlighter().lines(code)
  expect(lines.map((l) => l.map(([t]) => t).join('')).join('\n')).toBe(code)
  expect(lines[0]?.[0]).toEqual(['import', 'keyword'])
  expect(lines.flat()).toContainEqual(['# why', 'comment'])
  expect(lines.flat()).toContainEqual(['1.5', 'number'])
  expect(lines.flat()).toContainEqual(['f', 'name'])
})

it('is the same when the text comes bit by bit', () => {
  const h = new Highlighter()
  for (let i = 0; i <= code.length; i++) {
    expect(h.lines(code.slice(0, i))).toEqual(new Highlighter().lines(code.slice(0, i)))
  }
})
