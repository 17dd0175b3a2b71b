import { describe, expect, it } from 'vitest'
import { isComposing } from '../parts/keys'
import { headOf } from './attachments'
import { pastedTable } from './table'

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
  const rows = Array.from({ length: 1500 }, (_, i) => [i, 'North', 1.5, 2, 3, 4, 5, 6].join(',')).join('\n')
  const head = await headOf(new File([`${names}\n${rows}`], 'x.csv'))
  expect(head).toMatchObject({ moreColumns: 2, rows: 1500, texts: ['region'] })
  expect(head.numbers).toContain('n2')
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
