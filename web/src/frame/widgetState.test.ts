import { expect, it } from 'vitest'
import { readIn, readOut } from './protocol'
import { closed, models, needed } from './widgetState'

const nonce = '0123456789abcdef'
const one = (state: object, more: object = {}) => ({
  model_name: 'IntSliderModel',
  model_module: '@jupyter-widgets/controls',
  model_module_version: '2.0.0',
  state,
  ...more,
})

it('reads states, and leaves out what has not the form of one', () => {
  const read = models({
    a: one(
      { value: 5 },
      {
        buffers: [
          { path: ['x', 0], data: 'AAE=' },
          { path: ['__proto__', 'y'], data: 'AAE=' },
        ],
      },
    ),
    b: { state: 5 },
    ['c'.repeat(200)]: one({}),
    d: one({}, { too_large: 5_000_000, buffers: [{ path: [0], data: 'not base64!' }] }),
  })
  expect(Object.keys(read)).toEqual(['a', 'd'])
  expect(read.a?.buffers).toEqual([{ path: ['x', 0], data: 'AAE=' }])
  expect(read.d?.too_large).toBe(true)
  expect(read.d?.buffers).toEqual([])
  expect(models(JSON.parse('{"__proto__": {"state": {}}}')).polluted).toBeUndefined()
  expect(closed(['a', 5, 'x'.repeat(200)])).toEqual(['a'])
})

it('finds what a view needs', () => {
  const all = models({
    box: one({ children: ['IPY_MODEL_a'], layout: 'IPY_MODEL_l' }),
    a: one({ style: 'IPY_MODEL_s' }),
    s: one({}),
    l: one({}),
    other: one({}),
    link: { ...one({ source: ['IPY_MODEL_a', 'value'], target: ['IPY_MODEL_z', 'value'] }), model_name: 'LinkModel' },
    z: one({}),
    loop: one({ self: 'IPY_MODEL_loop' }),
  })
  expect(Object.keys(needed(all, 'box')).sort()).toEqual(['a', 'box', 'l', 'link', 's', 'z'])
  expect(Object.keys(needed(all, 'loop'))).toContain('loop')
  expect(Object.keys(needed(all, 'none'))).not.toContain('none')
})

it('reads moves, within bounds', () => {
  const move = (m: object) => readOut({ cove: nonce, move: m }, nonce)?.move
  expect(move({ n: 1, widget: 'a', state: { value: 5 } })).toEqual({ n: 1, widget: 'a', state: { value: 5 } })
  expect(move({ n: 1, widget: 'a', content: { event: 'click' } })?.content).toEqual({ event: 'click' })
  expect(move({ n: 1, widget: '../x y', state: {} })).toBeUndefined()
  expect(move({ n: 1.5, widget: 'a', state: {} })).toBeUndefined()
  expect(move({ n: 1, widget: 'a' })).toBeUndefined()
  expect(move({ n: 1, widget: 'a', state: [] })).toBeUndefined()
  expect(move({ n: 1, widget: 'a', state: { value: 'x'.repeat(300_000) } })).toBeUndefined()
  const loop: Record<string, unknown> = {}
  loop.self = loop
  expect(move({ n: 1, widget: 'a', state: loop })).toBeUndefined()
})

it('reads news of widgets', () => {
  const news = readIn({ cove: nonce, widgets: { models: { a: one({}) }, closed: ['b'], done: 3, quiet: true } }, nonce)
  expect(Object.keys(news?.widgets?.models ?? {})).toEqual(['a'])
  expect(news?.widgets).toMatchObject({ closed: ['b'], done: 3, quiet: true })
  expect(readIn({ cove: nonce, widgets: { done: 'x', quiet: 'yes' } }, nonce)?.widgets).toEqual({})
})
