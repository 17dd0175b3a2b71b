import { describe, expect, it } from 'vitest'
import { en } from '../words/en'
import { zh } from '../words/zh'
import { columnsOf, nameIn, suggest } from './suggest'

const sales = {
  names: ['date', 'region', 'units', 'revenue'],
  rows: [
    ['2024-01-01', 'North', '3', '1,200.50'],
    ['2024-01-01', 'South', '5', '900'],
    ['2024-02-01', 'North', '4', '1,100'],
  ],
}
const columns = columnsOf(sales.names, sales.rows)
const ask = (names: string[], rows: (string | null)[][], types: string[] = []) =>
  suggest([{ name: 'x.csv', columns: columnsOf(names, rows, types) }], en.suggest)

describe('questions about columns', () => {
  it('fit dates, groups and numbers, in both languages', () => {
    expect(suggest([{ name: 'sales.csv', columns }], en.suggest)).toEqual([
      'How did revenue change over time?',
      'Which region has the highest revenue?',
      'How do revenue and units go together?',
    ])
    expect(suggest([{ name: 'sales.csv', columns }], zh.suggest)[0]).toBe('revenue随时间如何变化？')
  })

  it('ask for missing values where there are some', () => {
    expect(
      ask(
        ['region', 'revenue'],
        [
          ['North', '1'],
          ['South', ''],
          ['West', '2'],
        ],
      ),
    ).toEqual([
      'Which region has the highest revenue?',
      'Which columns have missing values?',
      'How is revenue distributed?',
    ])
  })

  it('are not about numbers that are names, and constants', () => {
    const rows = Array.from({ length: 6 }, (_, i) => [`${i + 7}`, `${i * i}`, '5', `c${i % 2}`])
    expect(ask(['row', 'customer_id', 'rate', 'city'], rows)).toEqual([
      'How many rows does each city have?',
      'Summarize x.csv.',
      'What stands out in x.csv?',
    ])
  })

  it('take years and the types of the kernel for what they are', () => {
    expect(
      ask(
        ['Year', 'score'],
        [
          ['2020', '1'],
          ['2021', '9'],
          ['2022', '4'],
        ],
      )[0],
    ).toBe('How did score change over time?')
    expect(
      ask(
        ['when', 'n'],
        [
          ['Mon 1', '1'],
          ['Tue 2', '3'],
        ],
        ['datetime64[ns]', 'int64'],
      )[0],
    ).toBe('How did n change over time?')
  })

  it('of a file that is no table are about the whole', () => {
    expect(suggest([{ name: 'notes.pdf', columns: [] }], en.suggest)).toEqual([
      'Summarize notes.pdf.',
      'What stands out in notes.pdf?',
    ])
    expect(suggest([], en.suggest)).toEqual([])
  })

  it('put two tables together by a column that both have, and say which one is meant', () => {
    const other = {
      name: 'people.csv',
      columns: columnsOf(
        ['region', 'people'],
        [
          ['North', '5'],
          ['South', '7'],
        ],
      ),
    }
    expect(suggest([{ name: 'sales.csv', columns }, other], en.suggest).slice(0, 2)).toEqual([
      'Combine sales.csv and people.csv by region. What stands out?',
      'In sales.csv: How did revenue change over time?',
    ])
  })

  it('were not asked before', () => {
    const asked = ['how did revenue change over time', 'Which region has the highest revenue?']
    const next = suggest([{ name: 'sales.csv', columns }], en.suggest, asked)
    expect(next).toHaveLength(3)
    expect(next[0]).toBe('How do revenue and units go together?')
  })
})

describe('a name from a file', () => {
  it('is one plain line, or none', () => {
    expect(nameIn(' a\n\tb\u202e\u0000c\u200b ')).toBe('a b c')
    expect(nameIn('<img src=x>')).toBe('“<img src=x>”')
    expect(nameIn('say “x”!')).toBe('“say x!”')
    expect(nameIn('x'.repeat(61))).toBe('')
    expect(nameIn('x'.repeat(1e6))).toBe('')
    expect(nameIn('\u202e\n')).toBe('')
  })

  it('that is too long, empty or a number of pandas is left out, and of many columns only the first are read', () => {
    expect(columnsOf(['x'.repeat(99), '', 'Unnamed: 0', 'n'], [['1', '1', '1', '1']]).map((c) => c.name)).toEqual(['n'])
    expect(
      columnsOf(
        Array.from({ length: 9000 }, (_, i) => `c${i}`),
        [],
      ),
    ).toHaveLength(50)
  })
})
