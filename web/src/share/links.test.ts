import { describe, expect, it } from 'vitest'
import type { Caller } from '../api/client'
import { invitationAddress, mayShare, sharedAddress } from './links'

const root = new URL('https://h.example/tools/cove/')
const caller = (more: Partial<Caller>) =>
  ({ user: 'usr_1', project: 'prj_1', role: 'member', admin: false, ...more }) as Caller

describe('addresses', () => {
  it('are below the path that a proxy has', () => {
    expect(sharedAddress('abc', root)).toBe('https://h.example/tools/cove/shared/abc')
    expect(invitationAddress('abc', root)).toBe('https://h.example/tools/cove/#invitation=abc')
  })
})

describe('making links', () => {
  it('is for who writes conversations', () => {
    expect(mayShare(undefined)).toBe(false)
    expect(mayShare(caller({}))).toBe(true)
    expect(mayShare(caller({ role: 'viewer' }))).toBe(false)
    expect(mayShare(caller({ scopes: ['conversations:write'] }))).toBe(false)
  })
})
