import { flushSync } from 'react-dom'
import { createRoot } from 'react-dom/client'
import { expect, it, vi } from 'vitest'
import { figuresOf } from '../events/group'
import { settled } from '../frame/outputItem'
import { FrameView } from './FrameView'
import type { OutputEvent } from './types'
import { statesFor, ToldStates, WidgetStates, widgetMime, widgetOf } from './widgets'

const model = (value: number) => ({ model_name: 'M', model_module: 'm', model_module_version: '1', state: { value } })
const tells = (models: object, closed: string[] = []) => ({ type: 'widgets', models, closed }) as OutputEvent

it('knows the widget of a bundle', () => {
  expect(widgetOf({ [widgetMime]: { model_id: 'abc' } })).toBe('abc')
  expect(widgetOf({ [widgetMime]: { model_id: 'a b' } })).toBeNull()
  expect(widgetOf({ [widgetMime]: null })).toBeNull()
  expect(widgetOf({ 'text/plain': 'x' })).toBeNull()
})

it('keeps the last states that events told', () => {
  const told = new ToldStates()
  const events = [tells({ a: model(1) })]
  expect(told.read(events)).toHaveLength(1)
  events.push({ type: 'stream', name: 'stdout', text: 'x' }, tells({ a: model(2) }, ['b']))
  expect(told.read(events)).toHaveLength(1)
  expect(told.models.a?.state).toEqual({ value: 2 })
  expect([told.tells('a'), told.tells('b'), told.tells('c')]).toEqual([true, true, false])
  // Other events: they are read anew.
  told.read([tells({ c: model(1) })])
  expect([told.tells('a'), told.tells('c')]).toEqual([false, true])
  const now = { a: told.models.c ?? (model(0) as never) }
  expect(Object.keys(statesFor('a', told.models, now))).toEqual(['a'])
})

it('has one reader see to links', () => {
  const states = new WidgetStates()
  const heard: boolean[] = []
  states.subscribe((n) => heard.push(n.quiet))
  states.subscribe((n) => heard.push(n.quiet))
  states.push({ models: Object.create(null), closed: [] })
  expect(heard).toEqual([false, true])
  states.push({ models: Object.create(null), closed: [] }, true)
  expect(heard.slice(2)).toEqual([true, true])
})

it('shows widgets of a step that is folded, with their states', () => {
  const view = { type: 'display', data: { [widgetMime]: { model_id: 'a' } } }
  const text = { type: 'stream', data: undefined }
  const state = { type: 'widgets', data: undefined }
  expect(figuresOf([state, text, view])).toEqual([state, view])
  expect(figuresOf([state, text])).toEqual([])
})

it('settles what a line was overwritten with', () => {
  expect(settled('a\rb\nc\r\n\u001b[31mred\u001b[0m')).toBe('b\nc\nred')
})

it('draws no widget in a frame that led elsewhere', () => {
  const current = vi.fn(() => ({}))
  const failed = vi.fn()
  const box = document.body.appendChild(document.createElement('div'))
  const root = createRoot(box)
  flushSync(() =>
    root.render(
      <FrameView kind="widgets" data="a" current={current} theme="light" title="w" height={80} onFailed={failed} />,
    ),
  )
  const frame = () => box.querySelector('iframe') as HTMLIFrameElement
  const loads = () => flushSync(() => void frame().dispatchEvent(new Event('load')))
  loads()
  expect(current).toHaveBeenCalledTimes(1)
  const first = frame()
  loads()
  expect(current).toHaveBeenCalledTimes(1)
  expect(frame()).not.toBe(first)
  for (let i = 0; i < 20 && !failed.mock.calls.length; i++) loads()
  expect(failed).toHaveBeenCalled()
  flushSync(() => root.unmount())
})
