import { describe, expect, it } from 'vitest'
import { marked, wanted } from './marks'

const shown = (text: string, query: string) =>
  marked(text, query)
    .map((p) => (p.mark ? `[${p.text}]` : p.text))
    .join('')

describe('what was looked for', () => {
  it('is marked where a word begins', () => {
    expect(shown('The churn of churners, unchurned', 'CHURN')).toBe('The [churn] of [churn]ers, unchurned')
  })
  it('is marked for each word', () => {
    expect(shown('revenue by region', 'region rev')).toBe('[rev]enue by [region]')
  })
  it('is marked in Chinese, pair by pair', () => {
    expect(wanted('客户流失')).toEqual(['客户', '户流', '流失'])
    expect(shown('本月客户的流失率', '客户流失')).toBe('本月[客户]的[流失]率')
    expect(shown('流失churn分析', 'churn 流失')).toBe('[流失churn]分析')
  })
  it('leaves a text whole', () => {
    for (const [text, query] of [
      ['', 'x'],
      ['İstanbul İ', 'i'],
      ['a (b', '('],
    ] as const)
      expect(
        marked(text, query)
          .map((p) => p.text)
          .join(''),
      ).toBe(text)
  })
})
