import { describe, expect, it } from 'vitest'
import { complete, split, takeFormulas } from './blocks'

describe('split', () => {
  it('splits at blank lines outside of fences, lists and formulas', () => {
    expect(split('a\n\nb')).toEqual(['a\n', 'b'])
    expect(split('```py\na\n\nb\n```\n\nc')).toEqual(['```py\na\n\nb\n```\n', 'c'])
    expect(split('- a\n\n- b\n\n  more\n\nc')).toEqual(['- a\n\n- b\n\n  more\n', 'c'])
    expect(split('$$\na\n\nb\n$$\n\nc')).toEqual(['$$\na\n\nb\n$$\n', 'c'])
    expect(split('\n\n')).toEqual([])
  })
  it('leaves earlier blocks as they are while text comes', () => {
    const text = 'One **two**\n\n- a\n- b\n\n```\nx\n\ny\n```\n\nEnd `code` here.\n\nLast'
    for (let i = 1; i <= text.length; i++) {
      const now = split(text.slice(0, i))
      const end = split(text)
      for (let k = 0; k < now.length - 1; k++) expect(end[k]?.startsWith((now[k] ?? '').trimEnd())).toBe(true)
    }
  })
})

describe('complete', () => {
  it('closes what is open', () => {
    expect(complete('a **b')).toBe('a **b**')
    expect(complete('a **b *')).not.toContain('***')
    expect(complete('a `b')).toBe('a `b`')
    expect(complete('a **b and `c')).toBe('a **b and `c`**')
    expect(complete('```py\nx')).toBe('```py\nx\n```')
    expect(complete('see [the page](https://exa')).toBe('see the page')
    expect(complete('$$x')).toBe('$$x$$')
    expect(complete('a **b** c')).toBe('a **b** c')
  })
})

describe('takeFormulas', () => {
  const tex = (s: string) => takeFormulas(s).formulas.map((f) => (f.display ? `D ${f.tex}` : f.tex))
  it('leaves prices and code', () => {
    expect(tex('between $5 and $10')).toEqual([])
    expect(tex('costs $a and b $ more')).toEqual([])
    expect(tex('`$x$` and ```$y$```')).toEqual([])
    expect(tex('```\n$x$\n```')).toEqual([])
    expect(tex('\\$x$')).toEqual([])
    expect(tex('US$ 5 and US$ 6')).toEqual([])
    expect(tex('from $5,000/$6,000 to $7.50-$8, not $9 (was $10)')).toEqual([])
    expect(tex('**$1,200** and US$5 or US$6; $3 each, $4 for two')).toEqual([])
  })
  it('finds formulas', () => {
    expect(tex('$x^2$, \\(a_b\\) and $$\\sum$$ and \\[y\\]')).toEqual(['x^2', 'a_b', 'D \\sum', 'D y'])
    expect(tex('$\\frac{a}{b}$')).toEqual(['\\frac{a}{b}'])
    expect(tex('$10^{-3}$, $2x+1$, $0.5\\cdot x$, $3 \\times 4 = 12$ and $1$')).toEqual([
      '10^{-3}',
      '2x+1',
      '0.5\\cdot x',
      '3 \\times 4 = 12',
      '1',
    ])
    expect(takeFormulas('a $x$ b').text).toBe('a \ue0000\ue001 b')
  })
})
