import { describe, expect, it } from 'vitest'
import { baseOf, pathOf } from './base'
import { backOff } from './follow'
import { Problem, problemOf } from './problem'

describe('the base', () => {
  it('is found under a sub-path and from a deep address', () => {
    for (const [address, base] of [
      ['http://h/', 'http://h/'],
      ['http://h/c/cnv_1?turn=2#x', 'http://h/'],
      ['http://h/cove/', 'http://h/cove/'],
      ['http://h/cove/s/ses_1', 'http://h/cove/'],
      ['http://h/a/b/settings', 'http://h/a/b/'],
      ['http://h/index.html', 'http://h/'],
    ]) {
      expect(baseOf(address as string).href).toBe(base)
    }
  })

  it('has paths of files encoded', () => {
    expect(pathOf('a b/数据?.csv')).toBe('a%20b/%E6%95%B0%E6%8D%AE%3F.csv')
  })
})

describe('a problem', () => {
  it('has what the API said', async () => {
    const p = await problemOf(new Response('{"detail":"no","hint":"do","code":"c"}', { status: 409 }))
    expect([p.message, p.hint, p.code, p.status, p.passing]).toEqual(['no', 'do', 'c', 409, false])
  })

  it('is one without JSON, too', async () => {
    const p = await problemOf(new Response('<html>', { status: 502, statusText: 'Bad Gateway' }))
    expect([p.message, p.passing]).toEqual(['Bad Gateway', true])
    expect(new Problem(418, {}).message).toBe('HTTP 418')
  })
})

describe('the back-off', () => {
  it('grows to a limit, and differs', () => {
    expect(backOff(0, () => 0)).toBe(250)
    expect(backOff(0, () => 1)).toBe(500)
    expect(backOff(30, () => 1)).toBe(20_000)
  })
})
