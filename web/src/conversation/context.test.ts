import { describe, expect, it } from 'vitest'
import { count, money, percent } from '../parts/format'
import { fillOf } from './context'

describe('the context of a conversation', () => {
  it('is that of the last turn that has one', () => {
    const branch = [{ context: { used: 10, size: 100 } }, { context: { used: 50, size: 100 } }, {}]
    expect(fillOf(branch)).toEqual({ part: 0.5, size: 100, warn: false })
  })
  it('is not shown where its size is not known', () => {
    expect(fillOf([])).toBeNull()
    expect(fillOf([{}])).toBeNull()
    expect(fillOf([{ context: { used: 10 } }])).toBeNull()
    expect(fillOf([{ context: { used: 10, size: 100 } }, { context: { used: 10 } }])).toBeNull()
  })
  it('is warned of from 80 % on', () => {
    const warn = (used: number) => fillOf([{ context: { used, size: 1000 } }])?.warn
    expect([799, 800, 1200].map(warn)).toEqual([false, true, true])
  })
  it('is said in words', () => {
    expect(percent(0.834, 'en')).toBe('83%')
    expect(count(400_000, 'en')).toBe('400,000')
  })
})

describe('money', () => {
  it('has the more decimals the less it is', () => {
    const said = (n: number) => money(n, 'USD', 'en')
    expect([0, 12.5, 1.25, 0.25, 0.1234567, 0.012345, 0.000068, 0.000001].map(said)).toEqual([
      '$0.00',
      '$12.50',
      '$1.25',
      '$0.25',
      '$0.1235',
      '$0.0123',
      '$0.000068',
      '$0.000001',
    ])
  })
  it('is written in the language of the page', () => {
    expect(money(0.5, 'CNY', 'zh')).toBe('¥0.50')
    expect(money(1234.5, 'EUR', 'en')).toBe('€1,234.50')
  })
})
