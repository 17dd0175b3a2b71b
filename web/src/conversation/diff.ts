// What changed from one piece of code to the next, by lines.

export interface Line {
  kind: 'same' | 'gone' | 'new'
  text: string
}
export type Part = Line | { kind: 'left'; count: number }

export const mostLines = 2000
const around = 2

/** Lines of both, in order: the longest common ones stay. Null when there are too many to compare. */
export function diff(before: string, after: string): Line[] | null {
  const [a, b] = [before.trimEnd().split('\n'), after.trimEnd().split('\n')]
  if (a.length > mostLines || b.length > mostLines) return null
  let head = 0
  while (head < a.length && head < b.length && a[head] === b[head]) head++
  let tail = 0
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++
  const [x, y] = [a.slice(head, a.length - tail), b.slice(head, b.length - tail)]
  const same = (text: string): Line => ({ kind: 'same', text })
  return [...a.slice(0, head).map(same), ...middle(x, y), ...a.slice(a.length - tail).map(same)]
}

function middle(x: string[], y: string[]): Line[] {
  const wide = y.length + 1
  // How many lines are common from here to the end, for each pair of places.
  const common = new Uint16Array((x.length + 1) * wide)
  const at = (i: number, j: number) => common[i * wide + j] ?? 0
  for (let i = x.length - 1; i >= 0; i--)
    for (let j = y.length - 1; j >= 0; j--)
      common[i * wide + j] = x[i] === y[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
  const out: Line[] = []
  let [i, j] = [0, 0]
  while (i < x.length || j < y.length) {
    if (i < x.length && j < y.length && x[i] === y[j]) {
      out.push({ kind: 'same', text: x[i] ?? '' })
      i++
      j++
    } else if (j >= y.length || (i < x.length && at(i + 1, j) >= at(i, j + 1))) {
      out.push({ kind: 'gone', text: x[i++] ?? '' })
    } else out.push({ kind: 'new', text: y[j++] ?? '' })
  }
  return out
}

/** Leaves out what is the same and far from a change. */
export function brief(lines: readonly Line[]): Part[] {
  const near = new Array<boolean>(lines.length).fill(false)
  lines.forEach((l, i) => {
    if (l.kind === 'same') return
    for (let k = Math.max(0, i - around); k <= Math.min(lines.length - 1, i + around); k++) near[k] = true
  })
  const out: Part[] = []
  lines.forEach((l, i) => {
    const last = out.at(-1)
    if (near[i]) out.push(l)
    else if (last?.kind === 'left') last.count++
    else out.push({ kind: 'left', count: 1 })
  })
  return out
}
