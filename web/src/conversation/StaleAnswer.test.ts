import { act, createElement } from 'react'
import { createRoot } from 'react-dom/client'
import { expect, it } from 'vitest'
import { StaleAnswer } from './StaleAnswer'

it('asks for a new answer once while it works', async () => {
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true })
  const box = document.body.appendChild(document.createElement('div'))
  const root = createRoot(box)
  let times = 0
  let end: () => void = () => {}
  const onAnew = () => {
    times++
    return new Promise<void>((done) => {
      end = done
    })
  }
  await act(async () => root.render(createElement(StaleAnswer, { busy: false, onAnew })))
  const button = box.querySelector('button') as HTMLButtonElement
  await act(async () => button.click())
  await act(async () => button.click())
  expect([times, button.disabled]).toEqual([1, true])
  await act(async () => end())
  expect(button.disabled).toBe(false)
  await act(async () => root.unmount())
})
