import createClient from 'openapi-fetch'
import { api } from './base'
import { noteAnswer, noteFailure } from './connection'
import { offline, Problem, problemOf } from './problem'
import type { components, paths } from './schema'

export type Schemas = components['schemas']
export type Conversation = Schemas['Conversation']
export type Turn = Schemas['Turn']
export type Queued = Schemas['Question']
export type Session = Schemas['Session']
export type Execution = Schemas['Execution']
export type Entry = Schemas['Entry']
export type Stored = Schemas['File']
export type Caller = Schemas['Caller']
export type Model = Schemas['Model']

const devKey = 'cove-dev-key'

/** In development the page may use a key itself. A built page never does: it has a cookie that scripts cannot read. */
export function devHeaders(): Record<string, string> {
  if (!import.meta.env.DEV) return {}
  const key = sessionStorage.getItem(devKey)
  return key ? { Authorization: `Bearer ${key}` } : {}
}

export function keepDevKey(key: string | null) {
  if (!import.meta.env.DEV) return
  if (key) sessionStorage.setItem(devKey, key)
  else sessionStorage.removeItem(devKey)
}

const leavers = new Set<() => void>()

/** Calls back when the server says that nobody is signed in. */
export function onSignedOut(call: () => void) {
  leavers.add(call)
  return () => {
    leavers.delete(call)
  }
}

/** The server says that nobody is signed in. */
export function signedOut() {
  for (const call of leavers) call()
}

/** Fetches with the session's cookie. It fails with a Problem only. */
export async function send(input: Request | string, init?: RequestInit): Promise<Response> {
  const request = new Request(input, { credentials: 'same-origin', ...init })
  for (const [name, value] of Object.entries(devHeaders())) request.headers.set(name, value)
  let response: Response
  try {
    response = await fetch(request)
  } catch (error) {
    if (request.signal.aborted) throw error
    noteFailure()
    throw offline()
  }
  // A proxy that cannot reach the server answers in its place.
  if (response.status === 502 || response.status === 504) noteFailure()
  else noteAnswer()
  if (response.ok) return response
  const problem = await problemOf(response)
  if (problem.status === 401 && !/\/sign-(in|out)$/.test(new URL(request.url).pathname)) signedOut()
  throw problem
}

export const client = createClient<paths>({ baseUrl: api(''), fetch: (request) => send(request) })

/** The data of an answer. */
export async function data<T>(answer: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  const { data: said, error, response } = await answer
  if (error !== undefined) throw error instanceof Error ? error : new Problem(response.status, error as object)
  return said as T
}

/** A request that the OpenAPI document does not have. */
export async function post<T>(path: string, body?: unknown, method = 'POST'): Promise<T> {
  const response = await send(api(path), {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } }),
  })
  return (response.status === 204 ? undefined : await response.json()) as T
}

/** A key for a request that is to be performed once, however often it is sent. */
export const once = () => {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return { 'Idempotency-Key': `web-${Array.from(bytes, (b) => b.toString(16).padStart(2, '0')).join('')}` }
}

/** Repeats what failed for a passing reason. Safe with an Idempotency-Key only. */
export async function insist<T>(work: () => Promise<T>, times = 3): Promise<T> {
  for (let n = 1; ; n++) {
    try {
      return await work()
    } catch (error) {
      const passing = error instanceof Problem && (error.passing || error.code === 'idempotency_in_progress')
      if (!passing || n >= times) throw error
      await new Promise((done) => setTimeout(done, 400 * 2 ** n * (0.5 + Math.random() / 2)))
    }
  }
}

/** All pages of a list. */
export async function pages<T>(
  get: (after: string | undefined) => Promise<{ items: T[]; next?: string }>,
  most = 20,
): Promise<T[]> {
  const all: T[] = []
  let after: string | undefined
  for (let n = 0; n < most; n++) {
    const page = await get(after)
    all.push(...page.items)
    after = page.next
    if (!after) break
  }
  return all
}
