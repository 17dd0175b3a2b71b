import { act, createElement } from 'react'
import { createRoot } from 'react-dom/client'
import { beforeEach, expect, it } from 'vitest'
import { useUndoFocus } from './Undone'

let moved: ReturnType<typeof useUndoFocus>
function Page({ undone, last = 't1' }: { undone: boolean; last?: string }) {
  moved = useUndoFocus({ id: last, ...(undone ? { undone: { from: 't1', session: 's', at: '' } } : {}) })
  return createElement(
    'div',
    null,
    createElement(
      'article',
      { id: 't1', 'data-turn': true, tabIndex: -1 },
      createElement('button', { type: 'button', 'data-back': true }),
    ),
    undone && createElement('p', { 'data-undone-to': 't1' }, createElement('button', { type: 'button', id: 'redo' })),
    createElement('input', { id: 'other' }),
  )
}

let root: ReturnType<typeof createRoot>
const show = (undone: boolean, last = 't1') => act(async () => root.render(createElement(Page, { undone, last })))
const at = () => document.activeElement as HTMLElement

beforeEach(async () => {
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true })
  document.body.replaceChildren()
  root = createRoot(document.body.appendChild(document.createElement('div')))
  await show(false)
})

it('goes on at the way back when a turn is undone, and when it is redone', async () => {
  document.querySelector<HTMLElement>('[data-back]')?.focus()
  await act(async () => moved({ turn: 't1', undone: true }))
  await show(true)
  expect(at().id).toBe('redo')
  // The page may show it before it is known that it was done.
  await show(false)
  expect(at()).toBe(document.body)
  await act(async () => moved({ turn: 't1', undone: false }))
  expect(at().dataset.back).toBe('true')
})

it('stays with what somebody has gone to meanwhile', async () => {
  document.getElementById('other')?.focus()
  await act(async () => moved({ turn: 't1', undone: true }))
  await show(true)
  expect(at().id).toBe('other')
})

it('leaves the focus when another turn came after it before that was shown', async () => {
  await act(async () => moved({ turn: 't1', undone: true }))
  await show(false, 't2')
  await show(true)
  expect(at()).toBe(document.body)
})
