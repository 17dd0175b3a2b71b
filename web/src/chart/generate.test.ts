import { describe, expect, it } from 'vitest'
import { cases, hostile } from './cases'
import { literal } from './settings'

describe('the code of charts', () => {
  it('is run in Python by TestChartCode, each case by its name', () => {
    const all = cases()
    expect(new Set(all.map((c) => c.name)).size).toBe(all.length)
  })

  it('has each hostile name in literals alone', () => {
    for (const name of hostile) {
      const written = literal(name)
      expect(JSON.parse(written)).toBe(name)
      expect([...written].some((c) => c < ' ' || /[\u007f-\u009f\u2028\u2029\u202e]/.test(c))).toBe(false)
    }
    for (const c of cases()) {
      // Without its strings, what is left is the code of the generator.
      const bare = c.code.replace(/r?"""[^"]*"""|r?"(?:[^"\\\n]|\\.)*"/g, '""')
      expect(bare, c.name).not.toMatch(/import os|SystemExit|frac|hidden|销售|gpj|🙂|!ls|%matplotlib|what\?/)
      expect(bare.split('"').length % 2, c.name).toBe(1)
    }
  })
})
