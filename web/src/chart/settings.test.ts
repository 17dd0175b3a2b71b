import { describe, expect, it } from 'vitest'
import { hostile } from './cases'
import { guess, isNamed, offered } from './guess'
import { chartsOf, drawn, isRemoved, turnOf } from './own'
import { keepMark, marked, readMarked, type Settings } from './settings'

const settings: Settings = {
  id: 'chart1',
  after: 'trn_1',
  from: { of: 'variable', name: 'df', form: 'frame' },
  kind: 'bar',
  x: { at: 0, name: 'a', named: true },
  as: 'text',
  y: [{ at: 1, name: 'b', named: true }],
  color: null,
  use: 'sum',
  sort: 'x',
  top: 20,
  title: 'A title',
  palette: 'warm',
  colors: { b: '#ff0000' },
}

describe('settings of charts', () => {
  it('are read back as they were, whatever the names', () => {
    for (const name of hostile) {
      const s = {
        ...settings,
        title: name.slice(0, 200),
        colors: { [name]: '#00ff00' },
        x: { at: 0, name, named: true },
      }
      const code = marked(s, 'draw()\n')
      expect(code.split(/[\n\r\u2028\u2029\u0085]/).length).toBe(3)
      expect(readMarked(code)).toEqual({ settings: s, body: 'draw()\n', changed: false })
    }
  })

  it('do not match code that was changed by hand', () => {
    const code = marked(settings, 'draw()\n')
    expect(readMarked(`${code}more()`)?.changed).toBe(true)
    expect(readMarked('draw()')).toBeNull()
    // Without its mark it is still a version of the same chart.
    expect(readMarked(keepMark(code, 'other()'))).toEqual({ settings, body: 'other()', changed: true })
    expect(keepMark(code, `${code}more()`)).toBe(`${code}more()`)
  })

  it('are bounded, and none where they are something else', () => {
    const mark = marked(settings, '').split('{')[0]
    const read = (json: unknown) => readMarked(`${mark}${typeof json === 'string' ? json : JSON.stringify(json)}\n`)
    for (const broken of ['{', 'null', '[]', {}, { ...settings, id: '../x' }, { ...settings, from: { of: 'url' } }])
      expect(read(broken)).toBeNull()
    const odd = {
      ...settings,
      kind: 'x',
      y: Array(99).fill(settings.y[0]),
      x: { at: 1.5, name: 'a' },
      top: -1,
      colors: { b: 'url(x)' },
    }
    const s = read(odd)?.settings
    expect(s?.kind).toBe('bar')
    expect(s?.y.length).toBe(10)
    expect(s?.x).toBeNull()
    expect(s?.top).toBe(0)
    expect(s?.colors).toEqual({})
    expect(read({ ...settings, title: 'x'.repeat(40_000) })).toBeNull()
  })
})

describe('charts of a conversation', () => {
  const ran = (n: number, s: Settings, turn?: string) => ({
    id: `exe_${n}`,
    session: 'ses_1',
    code: marked(s, 'draw()\n'),
    created_at: new Date(n * 1000).toISOString(),
    state: 'ok',
    ...(turn ? { turn } : {}),
  })
  const turns = [
    { id: 'trn_copy', created_at: new Date(0).toISOString(), origin: { turn: 'trn_1' } },
    { id: 'trn_2', created_at: new Date(5000).toISOString() },
  ]

  it('have versions, and stand after their turns', () => {
    const { after: _, ...alone } = settings
    const [one, two, none] = chartsOf([
      ran(3, { ...settings, title: 'second' }),
      ran(1, settings),
      ran(6, { ...alone, id: 'chart2' }),
      ran(7, { ...alone, id: 'chart2', removed: true }),
      ran(8, { ...settings, id: 'chart3' }, 'trn_2'),
    ])
    expect(one?.versions.map((v) => v.settings.title)).toEqual(['A title', 'second'])
    expect(one && turnOf(one, turns)).toBe('trn_copy')
    expect(two && [isRemoved(two), drawn(two).length, turnOf(two, turns)]).toEqual([true, 1, 'trn_2'])
    expect(none).toBeUndefined()
  })
})

describe('the first guess', () => {
  const choice = (at: number, name: string, kind: 'number' | 'text' | 'date', values: string[] = []) => ({
    column: { at, name, named: true },
    kind,
    values,
  })
  it('goes by the types of columns', () => {
    const n = choice(1, 'amount', 'number')
    expect(guess([choice(0, 'day', 'date'), n])).toMatchObject({ kind: 'line', as: 'date', use: 'sum' })
    expect(guess([choice(0, 'city', 'text'), choice(2, 'city_id', 'number'), n])).toMatchObject({
      kind: 'bar',
      top: 20,
      use: 'sum',
      y: [{ name: 'amount' }],
    })
    expect(guess([choice(0, 'height', 'number'), n]).kind).toBe('scatter')
    expect(guess([n]).kind).toBe('histogram')
    expect(guess([choice(0, 'city', 'text')])).toMatchObject({ kind: 'bar', use: 'count', y: [] })
    expect(offered([choice(0, 'day', 'date'), n])[0]).toBe('line')
    expect(offered([n]).length).toBe(7)
  })
  it('takes what may not be a text by its place', () => {
    for (const name of ['0', '-1', "('a', 'b')", 'None', 'True', 'nan', "b'x'", '2025-01-01', '', ' ', '<obj>', 'x…'])
      expect(isNamed(name, [name])).toBe(false)
    expect(isNamed('a', ['a', 'a'])).toBe(false)
    for (const name of ['a', '销售', 'two words', '"]); import os #']) expect(isNamed(name, [name, 'b'])).toBe(true)
  })
})
