import { describe, expect, it } from 'vitest'
import { countRows, csv, isDataFrame, kindOf, order, parseTable, profile, short, tsv } from './table'

const frame = (head: string, body: string, tail = '') =>
  `<div><style scoped>.x{}</style><table border="1" class="dataframe"><thead>${head}</thead><tbody>${body}</tbody></table>${tail}</div>`
const tr = (i: string, ...cells: string[]) => `<tr><th>${i}</th>${cells.map((c) => `<td>${c}</td>`).join('')}</tr>`
const head = '<tr style="text-align: right;"><th></th><th>a</th><th>b</th></tr>'

describe('parseTable', () => {
  it('reads a DataFrame that pandas cut', () => {
    const html = frame(
      head,
      tr('0', '1', 'x') + tr('...', '...', '...') + tr('9', '2', '&lt;b&gt;'),
      '<p>5000 rows × 2 columns</p>',
    )
    expect(isDataFrame(html)).toBe(true)
    expect(parseTable(html)).toEqual({
      index: [''],
      columns: ['a', 'b'],
      rows: [
        { index: ['0'], cells: ['1', 'x'] },
        { index: ['9'], cells: ['2', '<b>'] },
      ],
      total: { rows: 5000, columns: 2 },
      gap: 1,
      cutColumns: 0,
    })
  })
  it('reads several levels', () => {
    const heads =
      '<tr><th></th><th></th><th colspan="2">u</th></tr><tr><th></th><th></th><th>sum</th><th>mean</th></tr><tr><th>r</th><th>p</th><th></th><th></th></tr>'
    const body =
      '<tr><th rowspan="2">East</th><th>T</th><td>1</td><td>2</td></tr><tr><th>C</th><td>3</td><td>4</td></tr>'
    const t = parseTable(frame(heads, body))
    expect(t?.index).toEqual(['r', 'p'])
    expect(t?.columns).toEqual(['u · sum', 'u · mean'])
    expect(t?.rows[1]).toEqual({ index: ['East', 'C'], cells: ['3', '4'] })
  })
  it('reads no more of a large table than is shown', () => {
    const html = frame(head, tr('0', '1', 'x').repeat(90_000), '<p>90000 rows × 2 columns</p>')
    expect(countRows(html)).toBe(90_001)
    const t = parseTable(html)
    expect(t?.rows.length).toBe(5000)
    expect(t?.total).toEqual({ rows: 90_000, columns: 2 })
    expect(parseTable(frame(head, tr('0', '1', 'x').repeat(9000)))?.total.rows).toBe(9000)
  })
  it('is bounded, and refuses what is more than a table', () => {
    const many = parseTable(frame(head, tr('0', '1', 'x').repeat(6000)))
    expect(many?.rows.length).toBe(5000)
    expect(many?.total.rows).toBe(6000)
    const wide = `<tr>${'<th>c</th>'.repeat(500)}</tr>`
    expect(parseTable(frame(wide, `<tr><th>0</th>${'<td>1</td>'.repeat(499)}</tr>`))?.columns.length).toBeLessThan(221)
    expect(parseTable(frame(head, '<tr><th rowspan="999999999" colspan="99999999">x</th></tr>'))).not.toBeNull()
    expect(parseTable(frame(head, tr('0', '<img src=x onerror=alert(1)>', 'b')))).toBeNull()
    expect(parseTable(frame('', ''))?.rows).toEqual([])
    expect(isDataFrame('<table><tr></tr></table>')).toBe(false)
  })
})

it('knows kinds, order and profile', () => {
  expect(kindOf(['1', '2.5', 'NaN'])).toBe('number')
  expect(kindOf(['2024-01-01 00:00:00'])).toBe('date')
  expect(kindOf(['1', 'x'])).toBe('text')
  expect(kindOf(['NaN'])).toBe('empty')
  expect(order(['10', 'NaN', '9'], 'number', false)).toEqual([2, 0, 1])
  expect(order(['10', 'NaN', '9'], 'number', true)).toEqual([0, 2, 1])
  expect(profile(['1', '3', 'NaN', '3'], 'number')).toMatchObject({ missing: 1, distinct: 2, min: '1', max: '3' })
})

it('writes TSV and CSV', () => {
  expect(tsv([['a\tb', 'c']])).toBe('a b\tc')
  const block = {
    columns: ['x', 'y'],
    rows: [
      ['=1+1', 'a"b'],
      ['-5', '@x'],
    ],
  }
  expect(csv(block)).toBe('x,y\r\n=1+1,"a""b"\r\n-5,@x\r\n')
})

it('keeps what is missing apart from what is empty', () => {
  expect(tsv([[null, '', 'a\tb']])).toBe('\t\ta b')
  expect(kindOf([null, '1', null])).toBe('number')
  expect(order([null, '2', '1'], 'number', false)).toEqual([2, 1, 0])
  expect(profile([null, 'a', 'a'], 'text')).toMatchObject({ missing: 1, distinct: 1, bars: [2] })
  expect(short('0.12345678901', 'number')).toBe('0.1234568')
  expect(short('0.12345678901', 'text')).toBe('0.12345678901')
})
