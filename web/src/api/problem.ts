import type { components } from './schema'

type Document = Partial<components['schemas']['Problem']>

/** What the API said went wrong. `code` is stable; `hint` is the next step. */
export class Problem extends Error {
  readonly status: number
  readonly code: string
  readonly hint: string
  readonly fields: readonly { field: string; message: string }[]
  readonly request: string

  constructor(status: number, said: Document) {
    super(said.detail || said.title || `HTTP ${status}`)
    this.name = 'Problem'
    this.status = status
    this.code = said.code ?? (status === 0 ? 'offline' : 'unknown')
    this.hint = said.hint ?? ''
    this.fields = said.errors ?? []
    this.request = said.request_id ?? ''
  }

  /** The network, a proxy or the server is away: the same request may succeed later. */
  get passing() {
    return this.status === 0 || this.status === 429 || this.status >= 500
  }
}

export const offline = () => new Problem(0, { code: 'offline', detail: 'The server cannot be reached.' })

export async function problemOf(response: Response): Promise<Problem> {
  try {
    const said: unknown = await response.clone().json()
    if (said && typeof said === 'object') return new Problem(response.status, said as Document)
  } catch {
    // Not the API's own answer, as that of a proxy.
  }
  return new Problem(response.status, { detail: response.statusText })
}

export const asProblem = (error: unknown): Problem =>
  error instanceof Problem
    ? error
    : new Problem(0, { code: 'fault', detail: error instanceof Error ? error.message : String(error) })
