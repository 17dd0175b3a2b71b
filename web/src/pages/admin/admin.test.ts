import { describe, expect, it } from 'vitest'
import { askedOf, fits, noFilter, type Row } from './audit'
import { csvOf } from './csv'
import { quotaOf, shownLimit } from './quota'
import { currencyOf, filled, roof } from './usage'

describe('limits', () => {
  it('are written in units of people', () => {
    expect(
      quotaOf({ live_sessions: '3', cpu_seconds_per_day: '1,5', disk_bytes: '500', tokens_per_day: ' ', x: '9' }),
    ).toEqual({ live_sessions: 3, cpu_seconds_per_day: 5400, disk_bytes: 500_000_000 })
    expect(shownLimit('cpu_seconds_per_day', 5400)).toBe('1.5')
    expect(shownLimit('disk_bytes', 500_000_000)).toBe('500')
    expect(shownLimit('tokens_per_day', undefined)).toBe('')
  })
  it('come back as they went', () => {
    for (const seconds of [1, 7, 100, 3601, 86_399])
      expect(
        quotaOf({ cpu_seconds_per_day: shownLimit('cpu_seconds_per_day', seconds) })?.cpu_seconds_per_day,
      ).toBeCloseTo(seconds, 6)
  })
  it('are refused when they are none', () => {
    for (const bad of ['-1', 'x', '1e400', '1e300']) expect(quotaOf({ disk_bytes: bad })).toBeNull()
    expect(quotaOf({ live_sessions: '0.2' })).toBeNull()
    expect(quotaOf({ live_sessions: '0' })).toEqual({})
  })
})

describe('usage', () => {
  it('has each day of the range', () => {
    const now = Date.parse('2026-11-23T22:00:00Z')
    const rows = filled([{ day: '2026-11-22', turns: 2 } as never], 3, now)
    expect(rows.map((r) => [r.day, r.turns])).toEqual([
      ['2026-11-21', 0],
      ['2026-11-22', 2],
      ['2026-11-23', 0],
    ])
  })
  it('has the currency of the last day with a cost', () => {
    const rows = [{ currency: 'USD' }, { currency: 'EUR' }, {}] as never[]
    expect(currencyOf(rows)).toBe('EUR')
    expect(currencyOf([{}] as never[])).toBeUndefined()
  })
  it('has an axis of round numbers', () => {
    expect([0, 0.3, 1, 3, 20, 21, 999].map(roof)).toEqual([1, 0.5, 1, 5, 20, 50, 1000])
  })
})

describe('a table as CSV', () => {
  it('quotes, and holds no formulas', () => {
    expect(
      csvOf(
        ['a', 'b'],
        [
          ['x, "y"', 1],
          ['=1+1', -2],
        ],
      ),
    ).toBe('a,b\r\n"x, ""y""",1\r\n\'=1+1,-2\r\n')
  })
})

describe('the audit log', () => {
  const row: Row = {
    id: 'aud_1',
    at: '2026-11-23T10:00:00Z',
    project: 'prj_1',
    user: 'usr_1',
    action: 'session.create',
    target: 'ses_9',
    outcome: 'forbidden',
  }
  const nameOf = (id: string) => (id === 'usr_1' ? 'ann' : id)
  it('is filtered', () => {
    expect(fits(row, noFilter, nameOf)).toBe(true)
    expect(fits(row, { ...noFilter, who: 'ANN', what: 'session' }, nameOf)).toBe(true)
    expect(fits(row, { ...noFilter, what: 'ses_9' }, nameOf)).toBe(true)
    expect(fits(row, { ...noFilter, what: 'ses_8' }, nameOf)).toBe(false)
  })
  it('is asked for by whole days of the own clock', () => {
    const { from = '', to = '', outcome } = askedOf({ ...noFilter, from: '2026-11-22', to: '2026-11-22', result: 'ok' })
    expect(new Date(from).getHours()).toBe(0)
    expect(Date.parse(to) - Date.parse(from)).toBe(86_400_000)
    expect(outcome).toBe('ok')
    expect(askedOf(noFilter)).toEqual({})
  })
})
