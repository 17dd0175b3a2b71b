import { describe, expect, it } from 'vitest'
import { sgr, Terminal } from './terminal'

const lines = (...chunks: string[]) => {
  const t = new Terminal()
  for (const c of chunks) t.write(c)
  return t.tail.map((l) => l.text)
}

describe('Terminal', () => {
  it('knows carriage return, backspace and erase', () => {
    expect(lines('abc\rX')).toEqual(['Xbc'])
    expect(lines('ab\bC\n')).toEqual(['aC', ''])
    expect(lines('10%|#   |\r\x1b[K100%\n')).toEqual(['100%', ''])
    expect(lines('a\r\nb')).toEqual(['a', 'b'])
  })
  it('moves up for nested bars', () => {
    expect(lines('outer 0\ninner 0\x1b[A\router 1\n\rinner 1')).toEqual(['outer 1', 'inner 1'])
  })
  it('drops titles, links and other sequences', () => {
    expect(lines('\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b\x1b[?25lc\x1b(Bd\x07')).toEqual(['abcd'])
  })
  it('gives the same for every cut', () => {
    const text = 'x\x1b[1;31mred\x1b[0m\r\x1b[38;2;1;2;3mo\x1b[K\n\x1b]0;t\x1b\\y\x1b[Az\x1b(Bq\nü😀'
    const whole = new Terminal()
    whole.write(text)
    for (let i = 0; i <= text.length; i++) {
      const t = new Terminal()
      t.write(text.slice(0, i))
      t.write(text.slice(i))
      expect(t.tail).toEqual(whole.tail)
    }
  })
  it('joins bytes that are cut inside a character', () => {
    const t = new Terminal()
    t.writeBytes(btoa('\xe4\xb8'))
    t.writeBytes(btoa('\xad'))
    t.write('!')
    expect(t.tail[0]?.text).toBe('中!')
    t.writeBytes('%%%')
    expect(t.tail[0]?.text).toBe('中!')
  })
  it('keeps head and tail', () => {
    const t = new Terminal()
    for (let i = 0; i < 50_000; i++) t.write(`${i}\n`)
    expect(t.head[0]?.text).toBe('0')
    expect(t.tail.at(-2)?.text).toBe('49999')
    expect(t.count).toBe(50_000)
    expect(t.head.length + t.tail.length).toBeLessThan(22_001)
    const long = new Terminal()
    for (let i = 0; i < 50; i++) long.write('y'.repeat(100_000))
    expect(long.tail[0]?.text.length).toBe(100_000)
    expect(long.tail[0]?.more).toBe(4_900_000)
  })
  it('keeps within the bytes', () => {
    const t = new Terminal()
    for (let i = 0; i < 500; i++) t.write(`${'z'.repeat(50_000)}\n`)
    const size = [...t.head, ...t.tail].reduce((n, l) => n + l.text.length, 0)
    expect(size).toBeLessThan(13_000_000)
    expect(t.count).toBe(500)
  })
  it('reads colours', () => {
    expect(sgr(null, '1;31')).toEqual({ bold: true, fg: 1 })
    expect(sgr(null, '38;5;196')).toEqual({ fg: '#ff0000' })
    expect(sgr(null, '48;2;999;2;3')).toEqual({ bg: '#ff0203' })
    expect(sgr(null, '38:5:9')).toEqual({ fg: 9 })
    expect(sgr(sgr(null, '1;4'), '22')).toEqual({ underline: true })
    expect(sgr(sgr(null, '1'), '')).toBeNull()
    const t = new Terminal()
    t.write('a\x1b[32mbc\x1b[0md\rZ')
    expect(t.tail[0]?.runs).toEqual([
      [1, null],
      [2, { fg: 2 }],
      [1, null],
    ])
  })
})
