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
    expect(await headOf(new File(['a;b\n1;"2"\n'], 'x.csv'))).toEqual([
      ['a', 'b'],
      ['1', '2'],
    ])
    expect(await headOf(new File(['a,b'], 'x.png'))).toEqual([])
  })
})
