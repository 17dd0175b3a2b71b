import type { ReactNode } from 'react'
import { flushSync } from 'react-dom'
import { createRoot } from 'react-dom/client'
import { describe, expect, it } from 'vitest'
import { chartOf } from './ChartFrame'
import { hosts, wantsScript } from './Html'
import { asksFirst, linkAddress } from './Link'
import { Markdown, pictureAddress } from './Markdown'
import { toMath } from './maths'
import { Outputs } from './Outputs'
import { Slots } from './slots'
import type { OutputEvent } from './types'
import { all, plain, size } from './words'

function render(node: ReactNode) {
  const container = document.createElement('div')
  flushSync(() => createRoot(container).render(node))
  return { container }
}

describe('what comes from outside', () => {
  it('loads no picture from elsewhere', () => {
    const files = (path: string) => `/files/${path}`
    for (const src of [
      'https://evil/?q=1',
      '//evil/x',
      '\\\\evil\\x',
      'http:evil',
      'data:image/svg+xml;base64,aa',
      'file:///x',
    ])
      expect(pictureAddress(src, files)).toBeNull()
    expect(pictureAddress('out/fig%201.png', files)).toBe('/files/out/fig 1.png')
    expect(pictureAddress('data:image/png;base64,aaaa')).toBe('data:image/png;base64,aaaa')
    const { container } = render(
      <Markdown
        text={'![a](https://evil/?q=1) <img src="https://evil/x"> [x](javascript:alert(1)) ![b][r]\n\n[r]: //evil/y'}
      />,
    )
    expect(container.querySelector('img')).toBeNull()
    expect(container.querySelector('a')).toBeNull()
    expect(container.textContent).toContain('evil')
  })
  it('asks before an address that can carry something', () => {
    expect(linkAddress('javascript:alert(1)')).toBeNull()
    expect(linkAddress('/relative')).toBeNull()
    const of = (s: string) => asksFirst(linkAddress(s) as URL)
    expect(of('https://a.org/x')).toBe(false)
    expect(of('https://a.org/x?y')).toBe(true)
    expect(of(`https://a.org/${'x'.repeat(80)}`)).toBe(true)
  })
  it('knows which HTML wants scripts', () => {
    for (const html of ['<script>', '<img src=x onerror=a()>', '<a href="javascript:a()">', '<SCRIPT src=x>'])
      expect(wantsScript(html)).toBe(true)
    expect(wantsScript('<p style="x">on = 1</p>')).toBe(false)
    expect(hosts('<script src="https://cdn.bokeh.org/x.js">')).toEqual(['cdn.bokeh.org'])
  })
  it('shows maths as MathML only', () => {
    const { container } = render(<p>{toMath('x^2 \\href{javascript:alert(1)}{y}', false)}</p>)
    expect(container.querySelector('math')).not.toBeNull()
    expect(container.querySelector('a, [href], [style], annotation')).toBeNull()
  })
  it('survives broken events', () => {
    const events = [
      { type: 'display', data: { 'image/png': 5, 'text/html': {} } },
      { type: 'display', data: { 'application/vnd.plotly.v1+json': 'x' } },
      { type: 'result', data: { 'application/json': null } },
      { type: 'error', name: null, value: 7, traceback: 'no', hint: {} },
      { type: 'install', packages: [{}], refused: 'x', notes: 3 },
      { type: 'file', path: 'a\nb\u202e', size: 'x' },
      { type: 'rollback', to: 'never' },
      { type: 'done', outcome: 'exploded', dropped_bytes: -1 },
    ] as unknown as OutputEvent[]
    const { container } = render(<Outputs items={events} live={false} />)
    expect(container.textContent).toContain('exploded')
    expect(chartOf({ 'application/vnd.vegalite.v6.1+json': {} })?.kind).toBe('vega-lite')
    // Altair 6 ends its types with .json, those before it with +json.
    expect(chartOf({ 'application/vnd.vegalite.v6.json': {} })?.kind).toBe('vega-lite')
    expect(chartOf({ 'application/vnd.vega.v6.json': {} })?.kind).toBe('vega')
    expect(chartOf({ 'application/vnd.plotly.v1+json': 'x' })).toBeNull()
  })
})

it('keeps six frames', () => {
  const slots = new Slots(2)
  const ended: string[] = []
  const ids = ['a', 'b', 'c'].map((n) => [Symbol(n), () => ended.push(n)] as const)
  for (const [id, end] of ids) slots.take(id, end)
  expect(ended).toEqual(['a'])
  expect(slots.count).toBe(2)
  // One that takes its place again when it should give way, as the chart of the full screen does.
  const whole = Symbol('whole')
  const take = () => slots.take(whole, take)
  take()
  for (const [id, end] of ids) slots.take(id, end)
  expect(ended.slice(1)).toEqual(['b', 'c', 'a', 'b'])
  expect(slots.count).toBe(2)
})

it('has the same words in both languages', () => {
  expect(Object.keys(all.zh)).toEqual(Object.keys(all.en))
  for (const key of Object.keys(all.en) as (keyof typeof all.en)[]) {
    const names = (s: string) => (s.match(/\{\w+\}/g) ?? []).sort()
    expect(names(all.zh[key]), key).toEqual(names(all.en[key]))
    expect(all.en[key]).not.toContain('!')
  }
  expect(plain('a\nb\u202ec')).toBe('a bc')
  expect(size(1_234_000)).toBe('1.2 MB')
})
