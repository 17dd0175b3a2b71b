import { expect, it } from 'vitest'
import { readIn, readOut, weigh } from './protocol'

const nonce = '0123456789abcdef'
const render = { kind: 'plotly', data: {}, theme: 'dark', locale: 'en', fill: false }

it('reads what the page says', () => {
  expect(readIn({ cove: nonce, render }, null)?.render?.kind).toBe('plotly')
  expect(readIn({ cove: nonce, render }, 'another-nonce-....')).toBeNull()
  expect(readIn({ cove: nonce, render: { ...render, kind: 'eval' } }, null)).toBeNull()
  expect(readIn({ cove: nonce, render: { ...render, locale: '"><' } }, null)).toBeNull()
  expect(readIn({ cove: nonce, export: 'png' }, nonce)).toEqual({ cove: nonce, export: 'png' })
  expect(readIn({ cove: nonce, export: 'exe' }, nonce)).toBeNull()
  expect(readIn(null, nonce)).toBeNull()
})

it('reads what the frame says, within bounds', () => {
  expect(readOut({ cove: nonce, height: 1e9 }, nonce)?.height).toBe(2000)
  expect(readOut({ cove: nonce, height: Number.NaN }, nonce)?.height).toBeUndefined()
  expect(readOut({ cove: 'x', height: 100 }, nonce)).toBeNull()
  expect(readOut({ cove: nonce, failed: 'x'.repeat(9000) }, nonce)?.failed?.length).toBe(500)
  expect(readOut({ cove: nonce, link: 'x'.repeat(9000) }, nonce)?.link).toBeUndefined()
  expect(readOut({ cove: nonce, exported: { kind: 'png', bytes: 'x' } }, nonce)?.exported).toBeUndefined()
  expect(readOut({ cove: nonce, leave: true }, nonce)?.leave).toBe(true)
  expect(readOut({ cove: nonce, leave: 'now' }, nonce)?.leave).toBeUndefined()
})

it('weighs charts', () => {
  expect(weigh({ data: [{ x: new Array(1000).fill(1) }] }).points).toBe(1001)
  let deep: unknown = 1
  for (let i = 0; i < 1000; i++) deep = [deep]
  expect(weigh(deep).deep).toBe(true)
})
