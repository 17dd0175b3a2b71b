import { expect, it } from 'vitest'
import { type Cell, insert, merge, move, runnable, stale, turnInto } from './cells'
import { command, declared } from './keys'

const run = (id: string) => ({ id, code: `# ${id}` })
const keys = (cells: readonly Cell[]) => cells.map((c) => c.key).join('')
const abc = () => merge([], [run('a'), run('b'), run('c')], new Set())

it('puts executions that are not known behind the cells', () => {
  const first = merge([], [run('a'), run('b')], new Set())
  expect(first.map((c) => c.key)).toEqual(['a', 'b'])
  expect(merge(first, [run('a'), run('b'), run('c')], new Set(['c'])).map((c) => c.key)).toEqual(['a', 'b'])
})

it('marks what ran before a cell above it', () => {
  const cells = abc()
  expect(stale(cells).size).toBe(0)
  const again = cells.map((c) => (c.key === 'a' ? { ...c, execution: 'd', at: 4 } : c))
  expect([...stale(again)]).toEqual(['b', 'c'])
})

it('marks what ran before Python was started anew', () => {
  const cells = abc()
  expect(stale(cells, 3).size).toBe(3)
  const again = cells.map((c) => (c.key === 'a' ? { ...c, at: 4 } : c))
  expect([...stale(again, 3)]).toEqual(['b', 'c'])
})

it('moves and adds cells', () => {
  const d: Cell = { key: 'd', code: '', ran: '', execution: '', at: 0 }
  expect(keys(insert(abc(), 1, d))).toBe('adbc')
  expect(keys(insert(abc(), 99, d))).toBe('abcd')
  expect(keys(move(abc(), 'c', -1))).toBe('acb')
  expect(keys(move(abc(), 'a', -1))).toBe('abc')
  expect(keys(move(abc(), 'c', 1))).toBe('abc')
})

it('runs code only', () => {
  const cells = turnInto(abc(), 'b', 'markdown')
  expect(cells[1]).toMatchObject({ kind: 'markdown', execution: '', code: '# b' })
  expect(runnable(cells)).toEqual(['a', 'c'])
  expect(runnable(cells, 1)).toEqual(['c'])
  expect(turnInto(cells, 'b', undefined)[1]?.kind).toBeUndefined()
  expect(stale(cells).size).toBe(0)
})

it('reads keys as Jupyter does', () => {
  const key = (k: string, more: object = {}) => ({
    key: k,
    ctrlKey: false,
    metaKey: false,
    altKey: false,
    shiftKey: false,
    ...more,
  })
  expect(command(key('a'), '', true)).toBe('above')
  expect(command(key('d'), '', true)).toBeNull()
  expect(command(key('d'), 'd', true)).toBe('remove')
  expect(command(key('0'), '0', true)).toBe('restart')
  expect(command(key('a'), '', false)).toBeNull()
  expect(command(key('Enter'), '', false)).toBe('edit')
  expect(command(key('Enter', { shiftKey: true }), '', false)).toBe('next')
  expect(command(key('Enter', { altKey: true }), '', false)).toBe('insert')
  expect(command(key('Enter', { ctrlKey: true }), '', false)).toBe('run')
  expect(command(key('c', { ctrlKey: true }), '', true)).toBeNull()
  expect(command(key('ArrowUp', { altKey: true }), '', true)).toBe('moveUp')
})

it('declares the keys of a cell that do something by themselves, and no others', () => {
  const pressed = (name: string) => {
    const parts = name.split('+')
    const has = (mod: string) => parts.slice(0, -1).includes(mod)
    return {
      key: parts.at(-1) ?? '',
      shiftKey: has('Shift'),
      ctrlKey: has('Control'),
      altKey: has('Alt'),
      metaKey: has('Meta'),
    }
  }
  for (const single of [true, false])
    for (const name of declared(single, 'Control').split(' '))
      expect([name, command(pressed(name), '', single)]).not.toContain(null)
  expect(declared(true, 'Meta').split(' ')).toContain('j')
  expect(declared(false, 'Meta').split(' ')).not.toContain('j')
})
