import { kept, type Limits, Terminal } from './terminal'
import type {
  DoneEvent,
  ErrorEvent,
  FileEvent,
  InputReplyEvent,
  InputRequestEvent,
  InstallEvent,
  Mime,
  OutputEvent,
  ProgressEvent,
  RollbackEvent,
} from './types'

// Events into what is shown, in order. A block that changes becomes another object with the same key.

export type Block =
  | { kind: 'terminal'; key: number; name: 'stdout' | 'stderr'; terminal: Terminal; version: number }
  | { kind: 'bundle'; key: number; data: Mime; metadata: Mime; id: string | null; result: boolean }
  | { kind: 'error'; key: number; event: ErrorEvent }
  | { kind: 'install'; key: number; progress: ProgressEvent | null; event: InstallEvent | null }
  | { kind: 'files'; key: number; files: readonly FileEvent[] }
  | { kind: 'rollback'; key: number; event: RollbackEvent }
  | { kind: 'input'; key: number; event: InputRequestEvent; reply: InputReplyEvent | null }
  | { kind: 'done'; key: number; event: DoneEvent }

const cleared = new Set<Block['kind']>(['terminal', 'bundle', 'error'])
const files = 1000

export class Folder {
  blocks: readonly Block[] = []
  private next = 0
  private clearing = false
  private readonly refused = new Set<string>()

  constructor(private readonly limits: Limits = kept) {}

  push(event: OutputEvent) {
    switch (event.type) {
      case 'stream':
        return this.stream(event.name === 'stderr' ? 'stderr' : 'stdout', event)
      case 'display':
        if (event.update && event.id && this.update(event.id, event)) return
        return this.bundle(event, typeof event.id === 'string' ? event.id : null, false)
      case 'result':
        return this.bundle(event, null, true)
      case 'error':
        this.clear()
        return this.add({ kind: 'error', key: this.next++, event })
      case 'clear_output':
        this.clearing = true
        if (!event.wait) this.clear()
        return
      case 'file':
        return this.file(event)
      case 'install':
        return this.install({ event: this.news(event) })
      case 'install_progress':
        return this.install({ progress: event })
      case 'rollback':
        return this.add({ kind: 'rollback', key: this.next++, event })
      case 'input_request':
        this.clear()
        return this.add({ kind: 'input', key: this.next++, event, reply: null })
      case 'input_reply':
        return this.answer(event)
      case 'widgets':
        return // see widgets.ts
      case 'done':
        return this.add({ kind: 'done', key: this.next++, event })
    }
  }

  /** An installation without what was refused before: the same name is refused when code is looked at, and again when it imports it. */
  private news(event: InstallEvent): InstallEvent {
    if (!Array.isArray(event.refused)) return event
    return {
      ...event,
      refused: event.refused.filter((r) => {
        const key = `${r?.name} ${r?.code}`
        const known = this.refused.has(key)
        this.refused.add(key)
        return !known
      }),
    }
  }

  private add(block: Block) {
    this.blocks = [...this.blocks, block]
  }

  private replace(at: number, block: Block) {
    this.blocks = this.blocks.with(at, block)
  }

  private answer(reply: InputReplyEvent) {
    const at = this.blocks.findLastIndex((b) => b.kind === 'input' && b.event.number === reply.number)
    const block = this.blocks[at]
    if (block?.kind === 'input') this.replace(at, { ...block, reply })
  }

  private clear() {
    if (!this.clearing) return
    this.clearing = false
    this.blocks = this.blocks.filter((b) => !cleared.has(b.kind) && !(b.kind === 'input' && b.reply))
  }

  /** In a row of stream blocks there is one of each name: prints between the steps of a bar do not break the bar. */
  private stream(name: 'stdout' | 'stderr', event: { text?: string; data?: string }) {
    this.clear()
    let at = this.blocks.length - 1
    while (at >= 0) {
      const b = this.blocks[at]
      if (b?.kind !== 'terminal') at = -1
      else if (b.name === name) break
      else at--
    }
    const old = this.blocks[at]
    const terminal = old?.kind === 'terminal' ? old.terminal : new Terminal(this.limits)
    if (typeof event.text === 'string') terminal.write(event.text)
    else if (typeof event.data === 'string') terminal.writeBytes(event.data)
    if (old?.kind === 'terminal') this.replace(at, { ...old, version: old.version + 1 })
    else this.add({ kind: 'terminal', key: this.next++, name, terminal, version: 0 })
  }

  private bundle(event: { data: Mime; metadata?: Mime }, id: string | null, result: boolean) {
    this.clear()
    this.add({
      kind: 'bundle',
      key: this.next++,
      data: record(event.data),
      metadata: record(event.metadata),
      id,
      result,
    })
  }

  private update(id: string, event: { data: Mime; metadata?: Mime }): boolean {
    let found = false
    this.blocks = this.blocks.map((b) => {
      if (b.kind !== 'bundle' || b.id !== id) return b
      found = true
      return { ...b, data: record(event.data), metadata: record(event.metadata) }
    })
    return found
  }

  private file(event: FileEvent) {
    const at = this.blocks.findIndex((b) => b.kind === 'files')
    const old = this.blocks[at]
    if (old?.kind !== 'files') return this.add({ kind: 'files', key: this.next++, files: [event] })
    const before = old.files.find((f) => f.path === event.path)
    if (!before && old.files.length >= files) return
    const now = before
      ? old.files.map((f) => (f === before ? { ...event, created: f.created || event.created } : f))
      : [...old.files, event]
    this.replace(at, { ...old, files: now })
  }

  /** Progress belongs to the install that follows it. */
  private install(part: { event?: InstallEvent; progress?: ProgressEvent }) {
    const at = this.blocks.findLastIndex((b) => b.kind === 'install')
    const old = this.blocks[at]
    if (old?.kind === 'install' && !old.event) return this.replace(at, { ...old, ...part })
    this.add({ kind: 'install', key: this.next++, progress: null, event: null, ...part })
  }
}

export function fold(events: readonly OutputEvent[], limits?: Limits): readonly Block[] {
  const folder = new Folder(limits)
  for (const event of events) folder.push(event)
  return folder.blocks
}

/** What a list that grows at its end folds to: only the new events are read. */
export class Following {
  private folder: Folder
  private count = 0
  private first: OutputEvent | undefined
  private last: OutputEvent | undefined

  constructor(private readonly limits: Limits = kept) {
    this.folder = new Folder(limits)
  }

  read(events: readonly OutputEvent[]): readonly Block[] {
    const same = events.length >= this.count && events[0] === this.first && events[this.count - 1] === this.last
    if (!same || this.count === 0) {
      this.folder = new Folder(this.limits)
      this.count = 0
    }
    for (let i = this.count; i < events.length; i++) {
      const event = events[i]
      if (event) this.folder.push(event)
    }
    this.count = events.length
    this.first = events[0]
    this.last = events.at(-1)
    return this.folder.blocks
  }
}

function record(value: unknown): Mime {
  return value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as Mime) : {}
}
