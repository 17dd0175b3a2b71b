import { describe, expect, it } from 'vitest'
import { draftOf, newDraft, said } from './draft'

describe('a connection that is written', () => {
  it('says what was filled in, once', () => {
    expect(said(newDraft())).toEqual({})
    expect(said({ ...newDraft(), address: ' http://h/v1 ', secret: ' k ', models: [' a', '', 'b', 'a'] })).toEqual({
      address: 'http://h/v1',
      key: 'k',
      models: ['a', 'b'],
      default: 'a',
    })
  })

  it('begins with what is there, the usual model first, and keeps the key', () => {
    const d = draftOf({
      provider: 'ollama',
      address: 'http://h',
      key_end: '1234',
      models: ['a', 'b'],
      default: 'b',
      from: 'api',
    })
    expect([d.models, d.has]).toEqual([['b', 'a'], '1234'])
    expect(said(d)).toEqual({ address: 'http://h', models: ['b', 'a'], default: 'b' })
  })
})
