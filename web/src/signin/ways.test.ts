import { describe, expect, it } from 'vitest'
import { lengthOf, takeCode, takeInvitation } from './ways'

describe('the address', () => {
  it('loses its secret when it is read', () => {
    history.replaceState(null, '', '/#invitation=abc')
    expect(takeCode()).toBeNull()
    expect(location.hash).toBe('#invitation=abc')
    expect(takeInvitation()).toBe('abc')
    expect(location.hash).toBe('')
    expect(takeInvitation()).toBeNull()
  })
})

describe('the length of a password', () => {
  it('counts characters and not units', () => {
    expect(lengthOf('123456789')).toEqual({ n: 9, fits: false, tooLong: false })
    expect(lengthOf('一二三四五六七八九十').fits).toBe(true)
    expect(lengthOf('😀'.repeat(9)).fits).toBe(false)
    expect(lengthOf('x'.repeat(201))).toEqual({ n: 201, fits: false, tooLong: true })
  })
})
