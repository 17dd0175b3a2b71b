import { act, createElement } from 'react'
import { createRoot } from 'react-dom/client'
import { expect, it } from 'vitest'
import { Actions } from './Menu'

it('stays open when the page says late that it had scrolled, and closes when its button moves', async () => {
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true })
  const box = document.body.appendChild(document.createElement('div'))
  const root = createRoot(box)
  await act(async () =>
    root.render(createElement(Actions, { label: 'More', actions: [{ id: 'a', label: 'A', act: () => {} }] })),
  )
  const button = box.querySelector('button') as HTMLButtonElement
  await act(async () => button.click())
  const scroll = () => act(async () => document.dispatchEvent(new Event('scroll')))
  await scroll()
  expect(box.querySelector('[role=menu]')).not.toBeNull()
  button.getBoundingClientRect = () => new DOMRect(0, 40, 20, 20)
  await scroll()
  expect(box.querySelector('[role=menu]')).toBeNull()
  await act(async () => root.unmount())
})
