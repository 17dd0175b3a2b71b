import { describe, expect, it } from 'vitest'
import type { Caller } from '../../api/client'
import { may, shownTo } from './rights'

const who = (role: string, more: Partial<Caller> = {}) =>
  ({ user: 'usr_1', project: 'prj_1', role, admin: false, ...more }) as Caller

describe('the administration', () => {
  it('has what the role may read', () => {
    expect(shownTo(who('auditor'), true)).toEqual(['usage', 'server', 'audit'])
    expect(shownTo(who('viewer'), true)).toEqual(['usage', 'sessions', 'models', 'server'])
    expect(shownTo(who('member'), true)).toEqual(['keys', 'usage', 'sessions', 'models', 'server'])
    expect(shownTo(who('owner'), true)).toEqual(['keys', 'usage', 'sessions', 'models', 'server', 'projects', 'audit'])
    expect(shownTo(who('owner', { admin: true }), true)).toHaveLength(8)
  })
  it('is small for somebody who is alone', () => {
    expect(shownTo(who('owner', { admin: true }), false)).toEqual(['keys', 'usage', 'sessions', 'models', 'server'])
  })
  it('moves nothing when it shows more', () => {
    const admin = who('owner', { admin: true })
    const few = shownTo(admin, false)
    expect(shownTo(admin, true).slice(0, few.length)).toEqual(few)
  })
  it('does not hide from owners what they rule', () => {
    expect(shownTo(who('owner'), false)).toContain('audit')
  })
  it('heeds the scopes of a key', () => {
    const limited = who('owner', { admin: true, scopes: ['usage:read'] })
    expect(shownTo(limited, true)).toEqual(['usage', 'server'])
    expect(may(limited, 'server:manage')).toBe(false)
    expect(may(who('owner'), 'server:manage')).toBe(false)
  })
})
