import { expect, it } from 'vitest'
import { brief, diff, mostLines } from './diff'

const told = (a: string, b: string) =>
  diff(a, b)
    ?.map((l) => ({ same: ' ', gone: '-', new: '+' })[l.kind] + l.text)
    .join('\n')

it('says which lines went and which came', () => {
  expect(told('a\nb\nc', 'a\nx\nc')).toBe(' a\n-b\n+x\n c')
  expect(told('a', 'a\nb\n')).toBe(' a\n+b')
  expect(told('a\nb\nc\nd', 'b\nd\ne')).toBe('-a\n b\n-c\n d\n+e')
  expect(told('', 'a')).toBe('-\n+a')
})

it('gives back both sides, whatever they are', () => {
  let seed = 7
  const random = (n: number) => {
    seed = (seed * 1103515245 + 12345) % 2147483648
    return seed % n
  }
  for (let n = 0; n < 200; n++) {
    const text = () => Array.from({ length: random(12) + 1 }, () => 'abcd'[random(4)]).join('\n')
    const [a, b] = [text(), text()]
    const lines = diff(a, b) ?? []
    expect(lines.flatMap((l) => (l.kind === 'new' ? [] : [l.text])).join('\n')).toBe(a)
    expect(lines.flatMap((l) => (l.kind === 'gone' ? [] : [l.text])).join('\n')).toBe(b)
  }
})

it('is bounded, and leaves out what is far from a change', () => {
  const long = Array.from({ length: mostLines + 1 }, (_, i) => `${i}`).join('\n')
  expect(diff(long, 'a')).toBeNull()
  const most = Array.from({ length: mostLines }, (_, i) => `${i}`)
  const lines = diff(most.join('\n'), [...most.slice(0, 1000), 'x', ...most.slice(1001)].join('\n'))
  expect(brief(lines ?? []).map((p) => (p.kind === 'left' ? p.count : p.kind))).toEqual([
    998,
    'same',
    'same',
    'gone',
    'new',
    'same',
    'same',
    997,
  ])
})
