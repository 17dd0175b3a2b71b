import { describe, expect, it } from 'vitest'
import { isComposing } from '../parts/keys'
import { headOf } from './attachments'
import { firstRows, pastedTable, RowCounter } from './table'

describe('a pasted table', () => {
  it('comes from a spreadsheet', () => {
    expect(pastedTable({ html: '', text: 'a\tb\r\n1\tx, y\r\n' })).toEqual({ csv: 'a,b\n1,"x, y"\n', rows: 2 })
  })
  it('comes from a page', () => {
    const html = '<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>"2"</td></tr></table>'
    expect(pastedTable({ html, text: 'a b' })).toEqual({ csv: 'a,b\n1,"""2"""\n', rows: 2 })
  })
  it('is not just any text', () => {
    for (const text of ['one line', 'two\nlines', 'a\tb\nc', 'x = 1\n\ty = 2'])
      expect(pastedTable({ html: '<b>x</b>', text })).toBeNull()
  })
})

describe('an input method', () => {
  it('is seen by either sign', () => {
    expect(isComposing({ nativeEvent: { isComposing: true }, keyCode: 13 })).toBe(true)
    expect(isComposing({ nativeEvent: { isComposing: false }, keyCode: 229 })).toBe(true)
    expect(isComposing({ nativeEvent: { isComposing: false }, keyCode: 13 })).toBe(false)
  })
})

describe('a file to be sent', () => {
  it('shows its first rows', async () => {
    expect((await headOf(new File(['a;b\n1;"2"\n'], 'x.csv'))).head).toEqual([
      ['a', 'b'],
      ['1', '2'],
    ])
    expect((await headOf(new File(['a,b'], 'x.png'))).head).toEqual([])
  })
})

it('says how much more a table has, and what its columns are', async () => {
  const names = Array.from({ length: 8 }, (_, i) => (i === 1 ? 'region' : `n${i}`)).join(',')
  const rows = Array.from({ length: 1500 }, (_, i) =>
    [i, i % 2 ? 'North' : 'South', i / 2, 2, 3, 4, 5, 6].join(','),
  ).join('\n')
  const head = await headOf(new File([`${names}\n${rows}`], 'x.csv'))
  expect(head).toMatchObject({ moreColumns: 2, rows: 1500 })
  expect(head.columns.slice(0, 4).map((c) => c.kind)).toEqual(['other', 'group', 'number', 'other'])
  expect(head.head[0]).toHaveLength(6)
})

it('reads a table of GBK', async () => {
  // 地区,收入 / 北部,1
  const gbk = new Uint8Array([
    0xb5, 0xd8, 0xc7, 0xf8, 44, 0xca, 0xd5, 0xc8, 0xeb, 10, 0xb1, 0xb1, 0xb2, 0xbf, 44, 49, 10,
  ])
  expect((await headOf(new File([gbk], 'x.csv'))).head).toEqual([
    ['地区', '收入'],
    ['北部', '1'],
  ])
})

it('takes a quoted cell for one, whatever is in it', async () => {
  const text = 'name,"note"\n"Smith, J.","two\nlines, ""quoted"""\n\nEve,5" pipe\nlast,"never closed\n'
  expect(firstRows(text, ',', 9)).toEqual([
    ['name', 'note'],
    ['Smith, J.', 'two\nlines, "quoted"'],
    ['Eve', '5" pipe'],
    ['last', '"never closed'],
  ])
  const { head, rows } = await headOf(new File(['a,b\n"1\n2\n3",x\n4,y\n'], 'x.csv'))
  expect([head, rows]).toEqual([
    [
      ['a', 'b'],
      ['1 2 3', 'x'],
      ['4', 'y'],
    ],
    2,
  ])
})

it('counts rows, not lines, in parts of any length', () => {
  const count = (text: string, size: number, sign = ',') => {
    const counter = new RowCounter(sign)
    const bytes = new TextEncoder().encode(text)
    for (let at = 0; at < bytes.length; at += size) counter.add(bytes.subarray(at, at + size))
    return counter.rows
  }
  for (const [text, rows] of [
    ['', 0],
    ['a,b', 1],
    ['a,b\r\n1,2\r\n', 2],
    ['a,b\n\n\n1,2', 2],
    ['a,b\n"x\n\ny","z\r\n"\n1,2\n', 3],
    ['a,b\n"say ""hi""\nthere",2\n', 2],
    ['a,b\n5" pipe,1\n6" pipe,2\n', 3],
    ['a,b\n"never closed,1\n2,3\n', 3],
    ['\ufeff', 0],
    ['\ufeffa,b\n1,2\n', 2],
    ['\ufeff"first\ncolumn",b\n1,2\n', 2],
    ['\ufefe"a\nb', 2],
  ] as const)
    for (const size of [1, 3, 1000]) expect([text, count(text, size)]).toEqual([text, rows])
})

it('shows no half of a character where a long line is cut', async () => {
  const [lead, trail] = [0xd6, 0xd0] // 中 in GB18030
  const gb = new Uint8Array(20_000).map((_, i) => (i < 16_380 ? 120 : i === 16_380 ? 44 : i % 2 ? lead : trail))
  const utf = new TextEncoder().encode(`${'x'.repeat(16_379)},${'中'.repeat(2000)}`)
  for (const bytes of [gb, utf]) expect((await headOf(new File([bytes], 'x.csv'))).head[0]?.[1]).toBe('中')
})
