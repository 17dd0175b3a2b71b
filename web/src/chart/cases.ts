import { chart as english } from '../words/en/chart'
import { chart as chinese } from '../words/zh/chart'
import { generate } from './generate'
import { type Choice, guess, isNamed } from './guess'
import { type Column, kinds, type Settings, uses } from './settings'

// Charts of tables with all kinds of names and values, for tests: TestChartCode runs them in Python.

/** Names that are hard to write down, or that would be code where they are not. */
export const hostile = [
  '"]); import os #',
  "'); raise SystemExit #",
  'a\nimport os',
  'a\r\nb',
  'line\u2028separator\u0085next',
  '\\',
  '\\"',
  '{x} %s {0}',
  '$\\frac{$',
  '$x^$',
  '_hidden',
  '销售额（万元）',
  'two words',
  ' leading and trailing ',
  '\u202egpj.exe',
  '\u0000zero',
  '🙂 smile',
  '"""',
  'x'.repeat(490),
  '!ls',
  '%matplotlib',
  'what?',
]

export interface Case {
  name: string
  /** Python that makes `table`. */
  setup: string
  code: string
  /** Whether a figure comes of it, or words alone. */
  figure: boolean
}

const { said } = english.charting
const zh = chinese.charting.said

const base: Settings = {
  id: 'case1',
  from: { of: 'variable', name: 'table', form: 'frame' },
  kind: 'bar',
  x: null,
  as: 'text',
  y: [],
  color: null,
  use: 'sum',
  sort: 'x',
  top: 0,
  title: '',
  palette: 'page',
  colors: {},
}

const column = (at: number, name: string, all: readonly string[]): Column => ({ at, name, named: isNamed(name, all) })

const add = (to: Case[], name: string, setup: string, s: Partial<Settings>, figure = true, words = said) =>
  to.push({ name, setup, code: generate({ ...base, ...s }, words), figure })

const python = (text: string) => JSON.stringify(text)

function ofNames(out: Case[]) {
  for (const name of hostile) {
    const all = [name, 'value']
    const setup = `table = pd.DataFrame({${python(name)}: ["a", "b", "a", "$x$ $"], "value": [1, 2, 3, 4]})`
    const x = column(0, name, all)
    const y = column(1, 'value', all)
    add(out, `text named ${python(name).slice(0, 30)}`, setup, {
      x,
      y: [y],
      title: name.slice(0, 200),
      colors: { [name]: '#ff0000' },
    })
    const other = `table = pd.DataFrame({"x": [1, 2, 3], ${python(name)}: [1, 2, 3]})`
    const measure = column(1, name, ['x', name])
    for (const kind of ['line', 'box'] as const)
      add(out, `${kind} of ${python(name).slice(0, 30)}`, other, {
        kind,
        x: kind === 'box' ? null : column(0, 'x', ['x', name]),
        as: 'number',
        y: [measure],
        use: kind === 'line' ? 'sum' : 'none',
      })
  }
}

function ofKinds(out: Case[]) {
  const all = ['day', 'city', 'n', 'm']
  const setup =
    'table = pd.DataFrame({"day": pd.date_range("2025-01-01", periods=60), "city": ["Rome", "Zürich", None] * 20, "n": range(60), "m": [1.5, None, -2] * 20})'
  const [day, city, n, m] = all.map((name, at) => column(at, name, all)) as [Column, Column, Column, Column]
  for (const kind of kinds)
    for (const use of ['scatter', 'histogram', 'box'].includes(kind) ? (['none'] as const) : uses)
      for (const x of [day, city, n])
        for (const color of [null, city])
          add(out, `${kind} ${use} by ${x.name}, colored by ${color?.name ?? 'nothing'}`, setup, {
            kind,
            use,
            x,
            as: x === day ? 'date' : x === n ? 'number' : 'text',
            color,
            y: use === 'count' ? [] : color || kind === 'pie' ? [n] : [n, m],
            sort: color ? 'down' : 'table',
            top: color ? 5 : 0,
          })
  for (const sort of ['up', 'x'] as const)
    for (const kind of ['bar', 'box'] as const)
      add(out, `${kind} ${sort}`, setup, { kind, sort, x: city, y: [n], palette: 'cool' }, true, zh)
}

function ofTables(out: Case[]) {
  const two = ['a', 'b']
  const [a, b] = two.map((name, at) => column(at, name, two)) as [Column, Column]
  const at = (place: number, name = 'b') => column(place, name, ['b', 'b'])
  add(out, 'duplicate names', 'table = pd.DataFrame([["p", 1, 5], ["q", 2, 6]], columns=["b", "b", "b"])', {
    x: at(0),
    y: [at(1), at(2)],
  })
  add(out, 'numbers as names', 'table = pd.DataFrame([["p", 1], ["q", 2]])', {
    x: column(0, '0', ['0', '1']),
    y: [column(1, '1', ['0', '1'])],
  })
  add(
    out,
    'names of several levels',
    'table = pd.DataFrame([["p", 1], ["q", 2]], columns=pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")]))',
    {
      x: column(0, "('a', 'x')", []),
      y: [column(1, "('a', 'y')", [])],
    },
  )
  const index: Column = { at: -1, name: 'k', named: false }
  add(out, 'an index', 'table = pd.DataFrame({"a": [3, 4]}, index=pd.Index(["p", "q"], name="k"))', {
    x: index,
    y: [column(0, 'a', ['a'])],
  })
  add(out, 'an index twice', 'table = pd.DataFrame({"a": [3, 4, 5]}, index=["p", "q", "p"])', {
    x: index,
    y: [column(0, 'a', ['a'])],
    use: 'none',
  })
  add(
    out,
    'an index of several levels',
    'table = pd.DataFrame({"g": ["p", "q"], "h": [1, 2], "a": [3, 4]}).set_index(["g", "h"])',
    { x: index, y: [column(0, 'a', ['a'])] },
  )
  add(out, 'an index of dates', 'table = pd.DataFrame({"a": [3, 4]}, index=pd.date_range("2025-01-01", periods=2))', {
    kind: 'line',
    as: 'date',
    x: index,
    y: [column(0, 'a', ['a'])],
  })
  add(
    out,
    'an index of periods',
    'table = pd.DataFrame({"a": [3, 4]}, index=pd.period_range("2025-01", periods=2, freq="M"))',
    { kind: 'area', as: 'date', x: index, y: [column(0, 'a', ['a'])] },
  )
  add(
    out,
    'dates as text',
    'table = pd.DataFrame({"a": ["2025-01-03", "2025-02-01 10:00", "no date", None], "b": [1, 2, 3, 4]})',
    { kind: 'line', as: 'date', x: a, y: [b] },
  )
  add(
    out,
    'dates with zones',
    'table = pd.DataFrame({"a": pd.date_range("2025-01-01", periods=3, tz="Asia/Shanghai"), "b": [1, 2, 3]})',
    { kind: 'line', as: 'date', x: a, y: [b] },
  )
  add(
    out,
    'no dates',
    'table = pd.DataFrame({"a": ["p", "q"], "b": [1, 2]})',
    { kind: 'line', as: 'date', x: a, y: [b] },
    false,
  )
  add(out, 'no numbers', 'table = pd.DataFrame({"a": ["p", "q"], "b": ["r", "s"]})', { x: a, y: [b] }, false)
  add(
    out,
    'missing values alone',
    'table = pd.DataFrame({"a": ["p", "q"], "b": [float("nan")] * 2})',
    { x: a, y: [b] },
    false,
  )
  add(out, 'no rows', 'table = pd.DataFrame({"a": [], "b": []})', { x: a, y: [b] }, false)
  add(
    out,
    'a pie of negative values',
    'table = pd.DataFrame({"a": ["p", "q"], "b": [1, -1]})',
    { kind: 'pie', x: a, y: [b] },
    false,
  )
  add(out, 'infinite', 'table = pd.DataFrame({"a": [1.0, float("inf"), 3.0], "b": [float("-inf"), 1, 2]})', {
    kind: 'histogram',
    y: [a, b],
  })
  add(
    out,
    'nullable',
    'table = pd.DataFrame({"a": pd.array(["p", None, "q"], dtype="string"), "b": pd.array([1, None, 3], dtype="Int64")})',
    { x: a, y: [b] },
  )
  add(
    out,
    'booleans and categories',
    'table = pd.DataFrame({"a": pd.Categorical(["p", "q", "p"], categories=["q", "p", "z"]), "b": [True, False, True]})',
    { x: a, y: [b] },
  )
  add(out, 'categories of numbers', 'table = pd.DataFrame({"a": ["p", "q"], "b": pd.Categorical([1, 2])})', {
    x: a,
    y: [b],
    color: a,
  })
  add(
    out,
    'decimals',
    'import decimal\ntable = pd.DataFrame({"a": ["p", "q"], "b": [decimal.Decimal("1.5"), decimal.Decimal("2")]})',
    { kind: 'pie', x: a, y: [b] },
  )
  add(out, 'lists', 'table = pd.DataFrame({"a": [[1], [2], [1]], "b": [1, 2, 3]})', { x: a, y: [b], color: a })
  add(out, 'many groups', 'table = pd.DataFrame({"a": range(300), "b": range(300)})', {
    x: a,
    y: [b],
    color: a,
    kind: 'line',
    as: 'number',
    use: 'none',
  })
  add(out, 'many bars', 'table = pd.DataFrame({"a": range(3000), "b": range(3000)})', { x: a, y: [b] })
  add(out, 'long texts', 'table = pd.DataFrame({"a": ["a" * 900, "b" * 900], "b": [1, 2]})', { x: a, y: [b] })
  const million =
    'import numpy as np\ntable = pd.DataFrame({"a": np.arange(1_000_000) % 1000, "b": np.random.default_rng(0).normal(size=1_000_000)})'
  for (const kind of kinds)
    add(
      out,
      `a million rows as ${kind}`,
      million,
      { kind, x: a, as: 'number', y: [b], use: kind === 'pie' ? 'count' : 'mean' },
      true,
    )
  const polars = { of: 'variable', name: 'table', form: 'polars' } as const
  add(out, 'polars', 'import polars, datetime\ntable = polars.DataFrame({"a": ["p", "q", None], "b": [1, 2, 3]})', {
    from: polars,
    x: a,
    y: [b],
  })
  add(
    out,
    'polars with dates',
    'import polars, datetime\ntable = polars.DataFrame({"a": [datetime.date(2025, 1, 1), None], "b": [1.0, None]})',
    { from: polars, kind: 'line', as: 'date', x: a, y: [b] },
  )
  add(out, 'a series', 'table = pd.Series([1, 2, 4], name="b")', {
    from: { ...polars, form: 'series' },
    kind: 'histogram',
    y: [column(0, 'b', ['b'])],
  })
  add(out, 'an array', 'import numpy as np\ntable = np.arange(20).reshape(10, 2)', {
    from: { ...polars, form: 'array' },
    kind: 'scatter',
    as: 'number',
    x: column(0, '0', []),
    y: [column(1, '1', [])],
  })
  const result = { of: 'variable', name: 'table', form: 'result' } as const
  const forms = {
    'a DataFrame': 'table = pd.DataFrame({"a": ["p", "q"], "b": [1, 2]})',
    polars: 'import polars\ntable = polars.DataFrame({"a": ["p", None], "b": [1, 2]})',
    'an array': 'import numpy as np\ntable = np.array([["p", "1"], ["q", "2"]])',
  }
  for (const [name, setup] of Object.entries(forms))
    add(out, `a result that is ${name}`, setup, { from: result, x: column(0, '0', []), y: [column(1, '1', [])] })
  add(out, 'a result that is a series', 'table = pd.Series([1, 2], index=pd.Index(["p", "q"], name="k"), name="b")', {
    from: result,
    x: index,
    y: [column(0, 'b', ['b'])],
  })
  add(out, 'a variable of a strange name', 'globals()["a \\"b"] = pd.DataFrame({"a": ["p"], "b": [1]})', {
    from: { of: 'variable', name: 'a "b', form: 'frame' },
    x: a,
    y: [b],
  })
  const path = 'a "b\';\n#.csv'
  add(out, 'a file', `open(${python(path)}, "w", encoding="gb18030").write("城市;b\\n北京;3\\n上海;4\\n")`, {
    from: { of: 'file', path, read: 'csv', separator: ';', encoding: 'gb18030' },
    x: column(0, '城市', ['城市', 'b']),
    y: [column(1, 'b', ['城市', 'b'])],
  })
  add(
    out,
    'a workbook',
    'pd.DataFrame({"a": ["p", "q"], "b": [1, 2]}).to_excel("book.xlsx", sheet_name="it\'s", index=False)',
    {
      from: { of: 'file', path: 'book.xlsx', read: 'excel', sheet: "it's" },
      x: a,
      y: [b],
    },
  )
}

/** The first guess for a table of these columns, drawn. */
function ofGuesses(out: Case[]) {
  const choice = (at: number, name: string, kind: Choice['kind'], values: string[] = []): Choice => ({
    column: column(at, name, ['a', 'b']),
    kind,
    values,
  })
  const tables: [string, string, Choice[]][] = [
    [
      'dates and numbers',
      '{"a": pd.date_range("2025-01-01", periods=3), "b": [1, 2, 3]}',
      [choice(0, 'a', 'date'), choice(1, 'b', 'number')],
    ],
    [
      'names and numbers',
      '{"a": ["p", "q", "p"], "b": [1, 2, 3]}',
      [choice(0, 'a', 'text', ['p', 'q', 'p']), choice(1, 'b', 'number')],
    ],
    ['two measures', '{"a": [3, 2, 1], "b": [1, 2, 3]}', [choice(0, 'a', 'number'), choice(1, 'b', 'number')]],
    [
      'names',
      '{"a": ["p", "q", "p"], "b": ["r", "s", "t"]}',
      [choice(0, 'a', 'text', ['p', 'q', 'p']), choice(1, 'b', 'text', ['r', 's', 't'])],
    ],
  ]
  for (const [name, frame, choices] of tables)
    add(out, `guessed for ${name}`, `table = pd.DataFrame(${frame})`, guess(choices))
}

export function cases(): Case[] {
  const out: Case[] = []
  ofNames(out)
  ofKinds(out)
  ofTables(out)
  ofGuesses(out)
  return out
}
