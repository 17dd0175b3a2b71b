// What a program wrote, as lines: a small terminal that knows \r, \b, colours, erase-to-end and cursor movements of
// progress bars. Everything else a terminal could be asked to do is dropped.

export interface Style {
  fg?: number | string // 0–15, or #rrggbb
  bg?: number | string
  bold?: true
  dim?: true
  italic?: true
  underline?: true
  strike?: true
  inverse?: true
}

/** `runs` are [length, style]; null is text without any. A changed line is another object. */
export interface Line {
  readonly text: string
  readonly runs: readonly Run[] | null
  readonly more: number // characters that were not kept
}
export type Run = readonly [length: number, style: Style | null]

export interface Limits {
  characters: number
  lines: number
  line: number
}
export const kept: Limits = { characters: 2_000_000, lines: 20_000, line: 100_000 }
export const whole: Limits = { characters: 64_000_000, lines: 2_000_000, line: 4_000_000 }

const empty: Line = { text: '', runs: null, more: 0 }
const lookBack = 200 // lines a cursor may go up

export class Terminal {
  head: Line[] = []
  tail: Line[] = [empty]
  dropped = 0 // lines between head and tail
  private column = 0
  private up = 0 // how far above the last line the cursor is
  private style: Style | null = null
  private pending = ''
  private headSize = 0
  private tailSize = 0
  private full = false
  private decoder: TextDecoder | null = null

  constructor(private readonly limits: Limits = kept) {}

  /** All lines but an empty last one. */
  get count(): number {
    const last = this.tail.at(-1)
    return this.head.length + this.dropped + this.tail.length - (last?.text ? 0 : 1)
  }

  writeBytes(base64: string) {
    let bytes: Uint8Array
    try {
      bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))
    } catch {
      return
    }
    this.decoder ??= new TextDecoder()
    this.put(this.decoder.decode(bytes, { stream: true }))
  }

  write(text: string) {
    if (this.decoder) {
      const rest = this.decoder.decode()
      this.decoder = null
      if (rest) this.put(rest)
    }
    this.put(text)
  }

  private put(chunk: string) {
    const text = this.pending + chunk
    this.pending = ''
    let i = 0
    while (i < text.length) {
      const next = plainUntil(text, i)
      if (next > i) {
        this.type(text.slice(i, next))
        i = next
        continue
      }
      const c = text[i]
      if (c === '\n') this.newline()
      else if (c === '\r') this.column = 0
      else if (c === '\b') this.column = Math.max(0, this.column - 1)
      else if (c === '\x1b') {
        const end = escapeEnd(text, i)
        if (end < 0) {
          this.pending = text.slice(i, i + 4096)
          return
        }
        this.escape(text.slice(i, end))
        i = end
        continue
      }
      i++
    }
  }

  private get row(): number {
    return this.tail.length - 1 - this.up
  }

  private set(row: number, line: Line) {
    const old = this.tail[row] ?? empty
    this.tailSize += line.text.length - old.text.length
    this.tail[row] = line
  }

  private type(text: string) {
    const row = this.row
    const line = this.tail[row] ?? empty
    const room = this.limits.line - this.column
    const fits = text.length > room ? text.slice(0, Math.max(0, room)) : text
    const more = line.more + text.length - fits.length
    this.set(row, fits ? { ...overlay(line, this.column, fits, this.style), more } : { ...line, more })
    this.column += fits.length
    if (this.tailSize > this.limits.characters) this.trim()
  }

  private newline() {
    this.column = 0
    if (this.up > 0) {
      this.up--
      return
    }
    this.tail.push(empty)
    if (this.tail.length > this.limits.lines / 2 || this.tailSize > this.limits.characters / 2) this.trim()
  }

  /** The first half of what may be kept stays for ever, the second half is the newest. */
  private trim() {
    const { lines, characters } = this.limits
    if (!this.full) {
      const movable = Math.max(0, this.tail.length - lookBack)
      let n = 0
      while (n < movable && this.head.length < lines / 2 && this.headSize < characters / 2) {
        const line = this.tail[n++] ?? empty
        this.head.push(line)
        this.headSize += line.text.length
        this.tailSize -= line.text.length
      }
      this.tail.splice(0, n)
      this.full = this.head.length >= lines / 2 || this.headSize >= characters / 2
      return
    }
    // In steps of a tenth, so that a line costs little.
    if (this.tail.length < lines * 0.55 && this.tailSize < characters * 0.55) return
    let n = 0
    const last = this.tail.length - 1 - this.up
    while (n < last && (this.tail.length - n > lines / 2 || this.tailSize > characters / 2)) {
      this.tailSize -= this.tail[n++]?.text.length ?? 0
    }
    this.tail.splice(0, n)
    this.dropped += n
  }

  private escape(sequence: string) {
    if (sequence[1] !== '[') return
    const final = sequence.at(-1)
    const body = sequence.slice(2, -1)
    if (final === 'm') {
      if (!/[<=>?]/.test(body)) this.style = sgr(this.style, body)
      return
    }
    const n = Math.min(Number.parseInt(body, 10) || 0, 10_000)
    if (final === 'K') this.erase(n)
    else if (final === 'A') this.up = Math.min(this.up + Math.max(1, n), this.tail.length - 1, lookBack)
    else if (final === 'B') this.up = Math.max(0, this.up - Math.max(1, n))
    else if (final === 'C') this.column = Math.min(this.column + Math.max(1, n), 10_000)
    else if (final === 'D') this.column = Math.max(0, this.column - Math.max(1, n))
    else if (final === 'G') this.column = Math.max(0, n - 1)
  }

  private erase(mode: number) {
    const line = this.tail[this.row] ?? empty
    if (mode === 0) this.set(this.row, { ...cut(line, this.column), more: 0 })
    else if (mode === 2) this.set(this.row, empty)
    else if (mode === 1)
      this.set(this.row, overlay(line, 0, ' '.repeat(Math.min(this.column + 1, line.text.length)), null))
  }
}

function plainUntil(text: string, from: number): number {
  let i = from
  while (i < text.length) {
    const c = text.charCodeAt(i)
    if ((c < 32 && c !== 9) || c === 127) break
    i++
  }
  return i
}

/** Where the escape sequence at `at` ends, or -1 when it is not complete. */
function escapeEnd(text: string, at: number): number {
  const kind = text[at + 1]
  if (kind === undefined) return -1
  if (kind === '[') {
    for (let i = at + 2; i < text.length; i++) {
      const c = text.charCodeAt(i)
      if (c >= 64 && c <= 126) return i + 1
      if (c < 32 || c > 126 || i - at > 256) return i // broken: what follows is text again
    }
    return -1
  }
  if (']PX^_'.includes(kind)) {
    for (let i = at + 2; i < text.length; i++) {
      if (text[i] === '\x07') return i + 1
      if (text[i] === '\x1b') {
        if (text[i + 1] === undefined) return -1
        return text[i + 1] === '\\' ? i + 2 : i
      }
      if (text[i] === '\n' || i - at > 4000) return i
    }
    return -1
  }
  let i = at + 1
  while (i < text.length && text.charCodeAt(i) >= 32 && text.charCodeAt(i) <= 47) i++
  if (i >= text.length) return i - at > 16 ? i : -1
  return text.charCodeAt(i) < 32 ? i : i + 1
}

function cut(line: Line, column: number): Line {
  if (line.text.length <= column) return line
  return { text: line.text.slice(0, column), runs: line.runs && slice(line.runs, 0, column), more: line.more }
}

function overlay(line: Line, column: number, text: string, style: Style | null): Line {
  let { text: old, runs } = line
  if (old.length < column) {
    if (runs) runs = [...runs, [column - old.length, null]]
    old = old.padEnd(column)
  }
  const end = column + text.length
  const now = column === old.length ? old + text : old.slice(0, column) + text + old.slice(end)
  if (!runs && !style) return { text: now, runs: null, more: line.more }
  const before: readonly Run[] = runs ?? (old.length ? [[old.length, null]] : [])
  return {
    text: now,
    runs: join([...slice(before, 0, column), [text.length, style], ...slice(before, end, now.length)]),
    more: line.more,
  }
}

function slice(runs: readonly Run[], from: number, to: number): Run[] {
  const out: Run[] = []
  let at = 0
  for (const [length, style] of runs) {
    const a = Math.max(at, from)
    const b = Math.min(at + length, to)
    if (b > a) out.push([b - a, style])
    at += length
  }
  return out
}

function join(runs: Run[]): Run[] {
  const out: Run[] = []
  for (const run of runs) {
    const last = out.at(-1)
    if (last && last[1] === run[1]) out[out.length - 1] = [last[0] + run[0], run[1]]
    else out.push(run)
  }
  return out
}

const styles = new Map<string, Style>()

/** The same object for the same looks. */
function interned(style: Style): Style | null {
  const key = JSON.stringify(style, Object.keys(style).sort())
  if (key === '{}') return null
  const known = styles.get(key)
  if (known) return known
  if (styles.size > 4096) styles.clear()
  styles.set(key, style)
  return style
}

const flags = ['', 'bold', 'dim', 'italic', 'underline', '', '', 'inverse', '', 'strike'] as const

export function sgr(from: Style | null, parameters: string): Style | null {
  let style: Style = { ...from }
  const codes = parameters
    .split(/[;:]/)
    .slice(0, 32)
    .map((p) => Number.parseInt(p, 10) || 0)
  for (let i = 0; i < codes.length; i++) {
    const c = codes[i] ?? 0
    const flag = flags[c]
    if (c === 0) style = {}
    else if (flag) style[flag] = true
    else if (c === 22) {
      delete style.bold
      delete style.dim
    } else if (c === 23) delete style.italic
    else if (c === 24) delete style.underline
    else if (c === 27) delete style.inverse
    else if (c === 29) delete style.strike
    else if (c >= 30 && c <= 37) style.fg = c - 30
    else if (c >= 40 && c <= 47) style.bg = c - 40
    else if (c >= 90 && c <= 97) style.fg = c - 82
    else if (c >= 100 && c <= 107) style.bg = c - 92
    else if (c === 39) delete style.fg
    else if (c === 49) delete style.bg
    else if (c === 38 || c === 48) {
      const [colour, used] = extended(codes, i + 1)
      i += used
      if (colour !== null) style[c === 38 ? 'fg' : 'bg'] = colour
    }
  }
  return interned(style)
}

function extended(codes: number[], at: number): [number | string | null, number] {
  const n = (k: number) => Math.min(255, Math.max(0, codes[at + k] ?? 0))
  if (codes[at] === 5) return [n(1) < 16 ? n(1) : hex(...palette(n(1))), 2]
  if (codes[at] === 2) return [hex(n(1), n(2), n(3)), 4]
  return [null, 0]
}

function palette(n: number): [number, number, number] {
  if (n >= 232) {
    const grey = 8 + (n - 232) * 10
    return [grey, grey, grey]
  }
  const level = (v: number) => (v === 0 ? 0 : 55 + v * 40)
  return [level(Math.floor((n - 16) / 36)), level(Math.floor((n - 16) / 6) % 6), level((n - 16) % 6)]
}

function hex(r: number, g: number, b: number): string {
  return `#${[r, g, b].map((v) => v.toString(16).padStart(2, '0')).join('')}`
}
