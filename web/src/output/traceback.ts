// A traceback as Python prints it, in parts: which frames are the person's own, and which are in libraries.

export interface Frame {
  own: boolean
  file: string
  line: number
  name: string
  lines: string[] // what follows: the code, and marks below it
}
export interface Part {
  own: boolean
  text: string // lines joined
  frames: number
}

const head = /^ {2}File "([^"]{1,500})", line (\d{1,9})(?:, in (.{1,200}))?$/
// biome-ignore lint/suspicious/noControlCharactersInRegex: that is what escapes are
const escapes = /\x1b\[[0-9;]*m/g

/** Cells are called <cell 3>; what is not below the interpreter's own folders is the person's. */
export function ownFile(file: string): boolean {
  if (/^<(cell|stdin|string|ipython)/.test(file)) return true
  return !/site-packages|dist-packages|\/lib\/python\d|^<frozen|^<|\/usr\/lib|\/opt\//.test(file)
}

export function frames(traceback: readonly string[]): Frame[] {
  const out: Frame[] = []
  for (const line of lines(traceback)) {
    const m = head.exec(line)
    if (m) {
      const file = m[1] ?? ''
      out.push({ own: ownFile(file), file, line: Number(m[2]), name: m[3] ?? '', lines: [] })
    } else if (line.startsWith('    ')) out.at(-1)?.lines.push(line)
  }
  return out
}

/** Own frames as they are, neighbouring frames of libraries as one part to unfold. */
export function parts(traceback: readonly string[]): Part[] {
  const out: Part[] = []
  let own = true
  for (const line of lines(traceback)) {
    const m = head.exec(line)
    if (m) own = ownFile(m[1] ?? '')
    else if (!line.startsWith('    ')) own = true
    const last = out.at(-1)
    if (last && last.own === own) {
      last.text += `\n${line}`
      last.frames += m ? 1 : 0
    } else out.push({ own, text: line, frames: m ? 1 : 0 })
  }
  return out
}

function lines(traceback: readonly string[]): string[] {
  const out: string[] = []
  for (const entry of traceback.slice(0, 2000)) {
    if (typeof entry !== 'string') continue
    out.push(...entry.slice(0, 100_000).replace(escapes, '').replace(/\n$/, '').split('\n'))
    if (out.length > 4000) break
  }
  return out
}
