import { describe, expect, it } from 'vitest'
import { type Block, Following, fold } from './fold'
import { promptText } from './InputLine'
import type { OutputEvent } from './types'

const out = (text: string): OutputEvent => ({ type: 'stream', name: 'stdout', text })
const err = (text: string): OutputEvent => ({ type: 'stream', name: 'stderr', text })
const show = (text: string, id?: string, update?: boolean): OutputEvent => ({
  type: 'display',
  data: { 'text/plain': text },
  ...(id ? { id } : {}),
  ...(update ? { update } : {}),
})
const plain = (blocks: readonly Block[]) =>
  blocks.map((b) => {
    if (b.kind === 'terminal') return `${b.name}: ${b.terminal.tail.map((l) => l.text).join('\n')}`
    if (b.kind === 'bundle') return `show: ${b.data['text/plain']}`
    if (b.kind === 'files') return `files: ${b.files.map((f) => f.path)}`
    return b.kind
  })

describe('fold', () => {
  it('joins streams by name', () => {
    expect(plain(fold([out('a'), err('x'), out('b'), show('s'), out('c')]))).toEqual([
      'stdout: ab',
      'stderr: x',
      'show: s',
      'stdout: c',
    ])
  })
  it('clears at once or when the next output comes', () => {
    const file: OutputEvent = { type: 'file', path: 'a.csv', size: 1 }
    expect(plain(fold([out('a'), file, { type: 'clear_output' }]))).toEqual(['files: a.csv'])
    const wait: OutputEvent[] = [out('a'), { type: 'clear_output', wait: true }]
    expect(plain(fold(wait))).toEqual(['stdout: a'])
    expect(plain(fold([...wait, file]))).toEqual(['stdout: a', 'files: a.csv'])
    expect(plain(fold([...wait, show('b')]))).toEqual(['show: b'])
  })
  it('has each answer with its request, and clears what is answered', () => {
    const request = (number: number): OutputEvent => ({ type: 'input_request', number, prompt: `${number}? ` })
    const reply = (number: number): OutputEvent => ({ type: 'input_reply', number, text: `${number}!` })
    const said = (events: OutputEvent[]) =>
      fold(events).map((b) => (b.kind === 'input' ? `${b.event.prompt}${b.reply?.text ?? 'waits'}` : b.kind))
    expect(said([out('a'), request(1), request(2), reply(2), out('b')])).toEqual([
      'terminal',
      '1? waits',
      '2? 2!',
      'terminal',
    ])
    expect(said([request(1), request(2), reply(2), reply(1)])).toEqual(['1? 1!', '2? 2!'])
    expect(said([request(1), reply(1), request(2), { type: 'clear_output' }])).toEqual(['2? waits'])
    expect(said([reply(7), request(1)])).toEqual(['1? waits'])
  })
  it('shows prompts without what terminals take as colours', () => {
    expect(promptText('\x1b[1;32mName\x1b[0m\x07:\n\x1b]0;title\x07> ')).toBe('Name:\n> ')
    expect(promptText({})).toBe('')
  })
  it('updates displays in place', () => {
    expect(plain(fold([show('1', 'k'), out('a'), show('2', 'k', true)]))).toEqual(['show: 2', 'stdout: a'])
    expect(plain(fold([show('2', 'k', true)]))).toEqual(['show: 2'])
  })
  it('tells once that a name was refused', () => {
    const refused = [{ name: 'docopt', code: 'no_wheel', reason: 'no' }]
    const blocks = fold([
      { type: 'install', refused },
      { type: 'install', refused: [...refused, { name: 'x', code: 'no_wheel' }] },
    ])
    expect(blocks.map((b) => b.kind === 'install' && b.event?.refused?.map((r) => r.name))).toEqual([['docopt'], ['x']])
  })
  it('puts progress and install together', () => {
    const blocks = fold([
      { type: 'install_progress', phase: 'download' },
      { type: 'install_progress', phase: 'unpack' },
      { type: 'install', packages: [] },
      { type: 'install_progress', phase: 'download' },
    ])
    expect(blocks.map((b) => b.kind === 'install' && [b.progress?.phase, !!b.event])).toEqual([
      ['unpack', true],
      ['download', false],
    ])
  })
  it('keeps that a changed file is new, and ignores what is unknown or broken', () => {
    const blocks = fold([
      { type: 'file', path: 'a', size: 1, created: true },
      { type: 'file', path: 'a', size: 9 },
    ])
    expect(blocks[0]?.kind === 'files' && blocks[0].files).toEqual([
      { type: 'file', path: 'a', size: 9, created: true },
    ])
    expect(fold([{ type: 'later' } as unknown as OutputEvent])).toEqual([])
    expect(plain(fold([{ type: 'display', data: null } as unknown as OutputEvent]))).toEqual(['show: undefined'])
  })
  it('is the same at every cut, incremental or from the start', () => {
    const events: OutputEvent[] = [
      out('\x1b[3'),
      out('1mred\n'),
      show('1', 'k'),
      err('w\r'),
      err('v'),
      { type: 'clear_output', wait: true },
      { type: 'install_progress', phase: 'download' },
      { type: 'install' },
      show('2', 'k', true),
      out('z'),
      { type: 'file', path: 'f', size: 1 },
      { type: 'error', name: 'E', value: 'v', traceback: [] },
      { type: 'done', outcome: 'error' },
    ]
    const following = new Following()
    for (let n = 0; n <= events.length; n++) {
      expect(following.read(events.slice(0, n))).toEqual(fold(events.slice(0, n)))
    }
    expect(following.read(events.slice(0, 3))).toEqual(fold(events.slice(0, 3)))
    const half = new Following()
    half.read(events.slice(0, 6))
    expect(half.read(events)).toEqual(fold(events))
  })
})
