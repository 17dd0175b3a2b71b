import { act, createElement } from 'react'
import { createRoot } from 'react-dom/client'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { client, type Turn } from '../api/client'
import { Problem } from '../api/problem'
import { queries } from '../api/queries'
import { executionLive } from '../events/live'
import { en } from '../words/en'
import { type Ran, rerunOf, runSteps, useRerun } from './reruns'

vi.mock('../api/client', async (original) => ({
  ...(await original<object>()),
  client: { GET: vi.fn(), PUT: vi.fn(), POST: vi.fn(), DELETE: vi.fn() },
}))
vi.mock('../events/live', async (original) => ({ ...(await original<object>()), executionLive: vi.fn() }))

/** What an execution's stream says in the end, when it is let go. */
function live(outcome: string | null) {
  const readers = new Set<() => void>()
  const it = {
    view: { done: null as unknown, state: 'running', items: [], files: [] },
    loaded: false,
    link: { link: 'open' },
    subscribe: (call: () => void) => {
      readers.add(call)
      return () => readers.delete(call)
    },
  }
  vi.mocked(executionLive).mockReturnValue(it as never)
  return () => {
    if (outcome) it.view.done = { type: 'done', outcome }
    it.loaded = true
    for (const call of readers) call()
  }
}

const get = client.GET as unknown as ReturnType<typeof vi.fn>
const put = client.PUT as unknown as ReturnType<typeof vi.fn>
const post = client.POST as unknown as ReturnType<typeof vi.fn>

const answer = (data: unknown) => Promise.resolve({ data, response: {} as Response })
const refusal = (status: number) => Promise.reject(new Problem(status, { detail: 'no' }))
const executionOf = (id: string, state: string) => answer({ id, state, code: `code of ${id}`, session: 's1' })

const turnOf = (...reruns: { step: number; execution: string }[]) =>
  ({
    id: 't1',
    conversation: 'c',
    reruns: reruns.map((r) => ({ ...r, at: '2026-11-30T12:00:00Z' })),
  }) as unknown as Turn

const shown: (Ran | null)[] = []
function Shows({ turn }: { turn: Turn }) {
  shown.push(useRerun([turn], 't1/1'))
  return null
}

let root: ReturnType<typeof createRoot>
const show = (turn: Turn) => act(async () => root.render(createElement(Shows, { turn })))
const last = () => shown.at(-1)
const calm = () => act(async () => void (await new Promise((done) => setTimeout(done))))

beforeEach(() => {
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true })
  vi.clearAllMocks()
  shown.length = 0
  root = createRoot(document.createElement('div'))
})
afterEach(() => act(() => root.unmount()))

it('shows what the server has noted, and what was removed in another window no more', async () => {
  get.mockImplementation(() => executionOf('e1', 'ok'))
  await show(turnOf({ step: 1, execution: 'e1' }))
  await calm()
  expect(last()).toEqual({ execution: 'e1', state: 'ok', code: 'code of e1', session: 's1' })
  await show(turnOf())
  expect(last()).toBeNull()
})

it('follows what runs in another window to its end', async () => {
  const end = live('ok')
  get.mockImplementation(() => executionOf('e2', 'running'))
  await show(turnOf({ step: 1, execution: 'e2' }))
  await calm()
  expect(last()).toMatchObject({ execution: 'e2', state: 'running' })
  await act(async () => end())
  await calm()
  expect(last()).toMatchObject({ execution: 'e2', state: 'ok' })
  expect(get).toHaveBeenCalledTimes(1)
})

it('asks once for what is gone, and has the step as it was', async () => {
  get.mockImplementation(() => refusal(404))
  for (let i = 0; i < 5; i++) {
    await show(turnOf({ step: 1, execution: 'e3' }))
    await calm()
  }
  expect(last()).toBe('gone')
  // A second reader, as another window of the steps, does not ask either.
  expect(await rerunOf([turnOf({ step: 1, execution: 'e3' })], 't1/1')).toBeNull()
  expect(get).toHaveBeenCalledTimes(1)
})

it('keeps what it runs itself until the server has noted it, and nothing after that', async () => {
  const end = live('ok')
  post.mockImplementation(() => answer({ id: 'e4' }))
  let noted: () => void = () => {}
  put.mockImplementation(
    () =>
      new Promise((done) => {
        noted = () => done({ data: turnOf({ step: 1, execution: 'e4' }), response: {} })
      }),
  )
  queries.setQueryData(['turns', 'c'], [turnOf()])
  await show(turnOf())
  const turn = turnOf()
  const running = runSteps(
    { session: 's1', turns: [turn], ids: ['t1'], busy: false },
    { id: 't1/1', code: 'x' },
    false,
    en,
  )
  await calm()
  expect(last()).toMatchObject({ execution: 'e4', state: 'running', code: 'x' })
  await act(async () => end())
  await calm()
  expect(last()).toMatchObject({ execution: 'e4', state: 'ok' })
  noted()
  await act(() => running)
  await calm()
  expect(last()).toBeNull()
  const [kept] = queries.getQueryData<Turn[]>(['turns', 'c']) ?? []
  await show(kept as Turn)
  expect(last()).toMatchObject({ execution: 'e4', state: 'ok' })
  expect(get).not.toHaveBeenCalled()
  expect(sessionStorage.getItem('cove.reruns')).toBeNull()
})
