import { act, createElement } from 'react'
import { createRoot } from 'react-dom/client'
import { expect, it } from 'vitest'
import { Actions } from './Menu'

it('stays with its button while the page scrolls, and closes when that is out of sight', async () => {
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true })
  const box = document.body.appendChild(document.createElement('div'))
  const root = createRoot(box)
  await act(async () =>
    root.render(createElement(Actions, { label: 'More', actions: [{ id: 'a', label: 'A', act: () => {} }] })),
  )
  const button = box.querySelector('button') as HTMLButtonElement
  await act(async () => button.click())
  const scroll = () => act(async () => document.dispatchEvent(new Event('scroll')))
  const menu = () => box.querySelector<HTMLElement>('[role=menu]')
  await scroll()
  expect(menu()?.style.top).toBe('8px')
  button.getBoundingClientRect = () => new DOMRect(0, 40, 20, 20)
  await scroll()
  expect(menu()?.style.top).toBe('64px')
  button.getBoundingClientRect = () => new DOMRect(0, -40, 20, 20)
  await scroll()
  expect(menu()).toBeNull()
  await act(async () => root.unmount())
})
