import { act, createElement } from 'react'
import { createRoot } from 'react-dom/client'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { client, type Turn } from '../api/client'
import { Problem } from '../api/problem'
import { queries } from '../api/queries'
import { executionLive, turnLive } from '../events/live'
import { en } from '../words/en'
import { outdatedOf } from './marks'
import { forget, lookUp, type Ran, rerunOf, runSteps, useRerun, useTurnsHere } from './reruns'

vi.mock('../api/client', async (original) => ({
  ...(await original<object>()),
  client: { GET: vi.fn(), PUT: vi.fn(), POST: vi.fn(), DELETE: vi.fn() },
}))
vi.mock('../events/live', async (original) => ({
  ...(await original<object>()),
  executionLive: vi.fn(),
  turnLive: vi.fn(),
}))

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
const remove = client.DELETE as unknown as ReturnType<typeof vi.fn>
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

let marked: readonly Turn[] = []
function ShowsHere({ turns }: { turns: readonly Turn[] }) {
  marked = useTurnsHere(turns)
  shown.push(useRerun(marked, 't1/1'))
  return null
}

let root: ReturnType<typeof createRoot>
const show = (turn: Turn) => act(async () => root.render(createElement(Shows, { turn })))
const last = () => shown.at(-1)
const calm = () => act(async () => void (await new Promise((done) => setTimeout(done))))

beforeEach(() => {
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true })
  vi.clearAllMocks()
  queries.clear()
  shown.length = 0
  root = createRoot(document.createElement('div'))
})
afterEach(async () => {
  vi.useRealTimers()
  await act(() => root.unmount())
})

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

it('keeps no lookup waiting for one that the server cannot answer, and asks again later', async () => {
  vi.useFakeTimers()
  get.mockImplementation((_, { params }) =>
    params.path.execution.startsWith('bad') ? refusal(500) : executionOf(params.path.execution, 'ok'),
  )
  const bad = ['bad1', 'bad2', 'bad3', 'bad4', 'bad5'].map((id) => lookUp(id).catch((e: Problem) => e.status))
  expect(await lookUp('e5')).toMatchObject({ execution: 'e5', state: 'ok' })
  await vi.advanceTimersByTimeAsync(60_000)
  expect(await Promise.all(bad)).toEqual([500, 500, 500, 500, 500])
  get.mockImplementation(() => executionOf('bad1', 'ok'))
  expect(await rerunOf([turnOf({ step: 1, execution: 'bad1' })], 't1/1')).toMatchObject({ state: 'ok' })
})

it('gives up a lookup that the server never answers', async () => {
  vi.useFakeTimers()
  get.mockImplementation(
    (_, { signal }) => new Promise((_, fail) => signal.addEventListener('abort', () => fail(signal.reason))),
  )
  const slow = lookUp('slow').catch((e: Problem) => e.code)
  await vi.advanceTimersByTimeAsync(60_000)
  expect(await slow).toBe('offline')
})

const place = (...turns: Turn[]) => ({ session: 's1', turns, ids: turns.map((t) => t.id), busy: false })

it('runs the steps after one whose note fails', async () => {
  vi.useFakeTimers()
  const step = (number: number) => ({
    kind: 'step',
    step: { number, state: 'ok', code: `y${number}`, items: [], files: [] },
  })
  vi.mocked(turnLive).mockReturnValue({
    view: { parts: [step(1), step(2), step(3)], state: 'answered' },
    loaded: true,
    link: { link: 'over' },
    subscribe: () => () => {},
  } as never)
  live('ok')()
  let made = 0
  post.mockImplementation(() => answer({ id: `n${++made}`, created_at: '2026-11-30T12:00:00Z' }))
  put.mockImplementation(() => refusal(500))
  await runSteps(place(turnOf()), { id: 't1/1', code: 'x' }, true, en)
  expect(post.mock.calls.map(([, { body }]) => body.code)).toEqual(['x', 'y2', 'y3'])
  await runSteps(place(turnOf()), { id: 't1/1', code: 'z' }, false, en)
  expect(post).toHaveBeenCalledTimes(4)
  await vi.advanceTimersByTimeAsync(600_000)
  for (const n of [1, 2, 3]) void forget(`t1/${n}`)
  remove.mockImplementation(() => answer(undefined))
  get.mockImplementation(() => answer(turnOf()))
  await vi.advanceTimersByTimeAsync(60_000)
})

it.each([403, 409, 422])(
  'shows what ran here, with marks, when the server refuses with %i to note it',
  async (status) => {
    live('ok')()
    const id = `kept${status}`
    post.mockImplementation(() => answer({ id, created_at: '2026-11-30T12:05:00Z' }))
    put.mockImplementation(() => refusal(status))
    const turn = { ...turnOf(), session: 's1', created_at: '2026-11-30T12:00:00Z' } as Turn
    const turns = [turn]
    await act(async () => root.render(createElement(ShowsHere, { turns })))
    await act(() => runSteps(place(turn), { id: 't1/1', code: 'x' }, false, en))
    await calm()
    expect(put).toHaveBeenCalledTimes(1)
    expect(last()).toMatchObject({ execution: id, state: 'ok', code: 'x' })
    expect([...outdatedOf(marked)]).toEqual(['t1'])
    expect(await rerunOf(marked, 't1/1')).toMatchObject({ execution: id })
    // It can be shown as it was.
    remove.mockImplementation(() => refusal(status))
    await act(() => forget('t1/1'))
    expect([last(), marked]).toEqual([null, turns])
  },
)

it('says that a result may not be read, until the turns are loaded again', async () => {
  get.mockImplementation(() => refusal(403))
  const turn = turnOf({ step: 1, execution: 'secret' })
  await show(turn)
  await calm()
  expect(last()).toBe('refused')
  expect(await rerunOf([turn], 't1/1')).toBeNull()
  expect(get).toHaveBeenCalledTimes(1)
  get.mockImplementation(() => executionOf('secret', 'ok'))
  const load = (state: string) =>
    act(async () => {
      await queries.fetchQuery({ queryKey: ['turns', 'c'], queryFn: () => [{ ...turn, state }], staleTime: 0 })
    })
  await load('running')
  await calm()
  expect(last()).toBe('refused')
  expect(get).toHaveBeenCalledTimes(1)
  await load('answered')
  await act(() => vi.waitFor(() => expect(get).toHaveBeenCalledTimes(2)))
  await calm()
  expect(last()).toMatchObject({ execution: 'secret', state: 'ok' })
})
