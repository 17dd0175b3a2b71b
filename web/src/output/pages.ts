import { agree, alike, type Piece, pieceOf, type Sheet } from './sheet'
import type { Value } from './table'

// The rows of a table in a kernel, as far as they were asked for: pages of 200 rows, twenty at most, one request at a time, since a kernel does one thing at a time.

export const pageRows = 200
export const mostPages = 20
const busyWait = 2000
const mostWaits = 60

export interface Ask {
  /** The number of a column, "index", or nothing. */
  sort: string
  descending: boolean
  filter: string
}

export const plainly: Ask = { sort: '', descending: false, filter: '' }
const same = (a: Ask, b: Ask) => a.sort === b.sort && a.descending === b.descending && a.filter === b.filter

export interface Reader {
  /** Rows come in their own order alone: they are neither sorted nor filtered nor described. */
  fixed?: boolean
  read: (name: string, query: Ask & { offset: number; limit: number }, signal: AbortSignal) => Promise<unknown>
  profile: (name: string, column: number, signal: AbortSignal) => Promise<unknown>
}

/** gone: it is not in the kernel; changed: something else is there under its name; busy: the kernel runs code; refused: this cannot be done with it. */
export interface Trouble {
  kind: 'gone' | 'changed' | 'busy' | 'refused' | 'failed'
  text: string
  hint: string
  code?: string
}

const codes: Record<string, Trouble['kind']> = {
  variable_unknown: 'gone',
  kernel_not_found: 'gone',
  session_not_found: 'gone',
  session_lost: 'gone',
  session_busy: 'busy',
  not_a_table: 'refused',
}

export function troubleOf(error: unknown): Trouble {
  const e = (error ?? {}) as { code?: unknown; message?: unknown; hint?: unknown }
  const code = String(e.code)
  return { kind: codes[code] ?? 'failed', text: String(e.message ?? ''), hint: String(e.hint ?? ''), code }
}

class Changed extends Error {
  readonly code = 'changed'
}

interface Generation {
  ask: Ask
  count: number
  pages: Map<number, Value[][]>
}

export class Pages {
  version = 0
  trouble: Trouble | null = null
  /** The columns as the kernel told them last: more of them than came with the event. */
  shape: Piece
  private now: Generation
  private next: Generation | null = null
  private wanted: number[] = []
  private verified = false
  private verify = false
  private flight: { control: AbortController; page: number; of: Generation } | null = null
  private waits = 0
  private timer: ReturnType<typeof setTimeout> | undefined
  private readonly readers = new Set<() => void>()

  constructor(
    private readonly reader: Reader,
    private readonly head: Sheet,
  ) {
    this.shape = head
    this.now = { ask: plainly, count: head.total, pages: new Map() }
  }

  subscribe = (call: () => void) => {
    this.readers.add(call)
    return () => {
      this.readers.delete(call)
    }
  }
  private tell() {
    this.version++
    for (const call of this.readers) call()
  }

  get count() {
    return this.now.count
  }
  /** What the rows that are shown were asked for. */
  get shown() {
    return this.now.ask
  }
  get asking() {
    return this.next !== null
  }
  get held() {
    return this.now.pages.size
  }

  row(i: number): readonly Value[] | undefined {
    const page = this.now.pages.get(Math.floor(i / pageRows))
    if (page) return page[i % pageRows]
    return this.fromHead(i)
  }

  private fromHead(i: number) {
    return same(this.now.ask, plainly) ? this.head.rows[i] : undefined
  }

  /** Sorts and filters. What is shown stays until the first rows of the other order are there. */
  ask(ask: Ask) {
    if (same(this.next?.ask ?? this.now.ask, ask)) return
    this.abort()
    if (this.trouble?.kind === 'refused') this.trouble = null
    this.next = same(this.now.ask, ask) ? null : { ask, count: 0, pages: new Map() }
    this.tell()
    this.pump()
  }

  /** Says which rows are in sight, and whether the columns behind those of the head are. */
  see(first: number, last: number, beyond = false) {
    const wide = this.shape.names.length > this.head.names.length
    this.wanted = []
    for (let p = Math.floor(first / pageRows); p * pageRows <= Math.min(last, this.now.count - 1); p++) {
      const from = Math.max(first, p * pageRows)
      const to = Math.min(last, (p + 1) * pageRows - 1, this.now.count - 1)
      if (!wide && this.fromHead(from) && this.fromHead(to)) continue
      this.touch(this.now, p)
      if (!this.now.pages.has(p)) this.wanted.push(p)
    }
    if (beyond && !this.verified && this.head.moreColumns > 0) this.verify = true
    if (this.flight && this.flight.of === this.now && !this.wanted.includes(this.flight.page)) this.abort()
    this.pump()
  }

  retry() {
    this.trouble = null
    this.waits = 0
    this.tell()
    this.pump()
  }

  stop() {
    this.abort()
    clearTimeout(this.timer)
  }

  private abort() {
    this.flight?.control.abort()
    this.flight = null
  }

  private touch(of: Generation, page: number) {
    const rows = of.pages.get(page)
    if (!rows) return
    of.pages.delete(page)
    of.pages.set(page, rows)
  }

  private keep(of: Generation, page: number, piece: Piece) {
    of.pages.set(page, piece.rows)
    of.count = Math.min(piece.matching, piece.total)
    for (const old of of.pages.keys()) {
      if (of.pages.size <= mostPages) break
      of.pages.delete(old)
    }
    if (piece.names.length > this.shape.names.length) this.shape = piece
  }

  private pump() {
    if (this.flight || this.trouble) return
    const of = this.next ?? this.now
    const page = this.next ? 0 : this.wanted.find((p) => !this.now.pages.has(p))
    if (page === undefined && !this.verify) return
    const control = new AbortController()
    const flight = { control, page: page ?? -1, of }
    this.flight = flight
    this.fetch(of, page, control.signal).then(
      () => this.landed(flight),
      (error) => {
        if (this.flight !== flight) return
        this.flight = null
        this.fail(error)
      },
    )
  }

  private async fetch(of: Generation, page: number | undefined, signal: AbortSignal) {
    await this.check(signal)
    signal.throwIfAborted()
    if (page === undefined) return
    const piece = await this.read({ ...of.ask, offset: page * pageRows, limit: pageRows }, signal)
    if (!signal.aborted) this.keep(of, page, piece)
  }

  private landed(flight: NonNullable<Pages['flight']>) {
    if (this.flight !== flight) return
    this.flight = null
    this.waits = 0
    if (this.next === flight.of) {
      this.now = this.next
      this.next = null
      this.wanted = []
    }
    this.tell()
    this.pump()
  }

  /** A name of a table can mean another after a restart, and a table can be changed in place: its first rows tell. */
  private async check(signal: AbortSignal) {
    if (this.verified) return
    const limit = Math.max(1, this.head.rows.length)
    const first = await this.read({ ...plainly, offset: 0, limit }, signal)
    if (!agree(this.head, first)) throw new Changed()
    this.verified = true
    this.verify = false
    if (first.names.length > this.shape.names.length) this.shape = first
  }

  private async read(query: Ask & { offset: number; limit: number }, signal: AbortSignal): Promise<Piece> {
    const piece = pieceOf(await this.reader.read(this.head.name, query, signal))
    if (!piece || !alike(this.head, piece)) throw new Changed()
    return piece
  }

  private fail(error: unknown) {
    this.trouble = error instanceof Changed ? { kind: 'changed', text: '', hint: '' } : troubleOf(error)
    if (this.trouble.kind === 'busy' && this.waits++ < mostWaits) {
      clearTimeout(this.timer)
      this.timer = setTimeout(() => {
        if (this.trouble?.kind !== 'busy') return
        this.trouble = null
        this.pump()
      }, busyWait)
    }
    // What cannot be sorted or searched is shown as it was.
    if (this.trouble.kind === 'refused') this.next = null
    this.tell()
  }

  /** Rows one after the other, from what is here and else from the kernel. `each` gets them as they come. */
  async rows(from: number, to: number, signal: AbortSignal, each: (rows: (readonly Value[])[]) => void) {
    await this.check(signal)
    const { ask } = this.now
    const wide = this.shape.names.length
    for (let at = from; at < to; ) {
      signal.throwIfAborted()
      const here: (readonly Value[])[] = []
      for (let i = at; i < to && here.length < 500; i++) {
        const row = this.row(i)
        if (!row || row.length <= wide) break
        here.push(row)
      }
      if (!here.length) {
        const piece = await this.read({ ...ask, offset: at, limit: Math.min(500, to - at) }, signal)
        here.push(...piece.rows)
      }
      if (!here.length) return
      each(here)
      at += here.length
    }
  }

  async profile(column: number, signal: AbortSignal): Promise<unknown> {
    await this.check(signal)
    return this.reader.profile(this.head.name, column, signal)
  }
}
