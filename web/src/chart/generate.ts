import { drawing } from './draw'
import { type Column, literal, mostSeries, type Palette, type Settings } from './settings'

// The code of a chart. Names, texts and paths of tables come from a sandbox: each is a literal, and columns that a name does not tell apart are taken by their places.

/** Sentences that the code prints, in the language of the page. {n} and such are filled in by Python. */
export interface Said {
  nothing: string
  left: string
  most: string
  others: string
  other: string
  sampled: string
  negative: string
  count: string
  sum: string
  mean: string
  index: string
}

/** Bars, boxes and the like that are drawn at most; points of a scatter plot. */
export const mostPlaces = 200
export const mostPoints = 20_000

const palette: Record<Exclude<Palette, 'page'>, string[]> = {
  clear: ['#4269D0', '#EFB118', '#FF725C', '#3CA951', '#A463F2', '#6CC5B0', '#9C6B4E', '#FF8AB7', '#97BBF5', '#9498A0'],
  warm: ['#8A3B12', '#D9822B', '#B5485D', '#E3B23C', '#7A2E3A', '#C26A4A', '#A3417F', '#E59A73', '#5C3A21', '#F0C987'],
  cool: ['#0B3F70', '#2B8CA8', '#4C6FB1', '#6CC5B0', '#3B5B92', '#8A5FA8', '#7FA8D9', '#0F6B62', '#A9C4E4', '#54478C'],
  grey: ['#33312D', '#77726A', '#B0AAA0', '#55524C', '#948E85', '#D0CBC3', '#1F1E1B', '#66625B', '#A29C93', '#45423D'],
}
/** As plot_style.py has them. */
const page = [
  '#0F6B62',
  '#B8690F',
  '#4C6FB1',
  '#B5485D',
  '#6B7A2E',
  '#8A5FA8',
  '#2B8CA8',
  '#8A3B12',
  '#A3417F',
  '#5F5B54',
]
export const colorsOf = (p: Palette) => (p === 'page' ? page : palette[p])

const identifier = /^[A-Za-z_]\w*$/
const keywords = new Set(
  'False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield'.split(
    ' ',
  ),
)

/** What is drawn from, as an expression. */
function sourceOf({ from }: Settings): { code: string; imports: boolean } {
  if (from.of === 'variable') {
    const name = identifier.test(from.name) && !keywords.has(from.name) ? from.name : `globals()[${literal(from.name)}]`
    if (from.form === 'series') return { code: `${name}.to_frame()`, imports: false }
    if (from.form === 'array') return { code: `pd.DataFrame(${name})`, imports: true }
    return { code: name, imports: false }
  }
  const more = [
    from.separator && from.separator !== ',' ? `sep=${literal(from.separator)}` : '',
    from.encoding && !/^(utf-?8|ascii)$/i.test(from.encoding) ? `encoding=${literal(from.encoding)}` : '',
  ]
  const path = literal(from.path)
  const args = (list: string[]) => [path, ...list.filter(Boolean)].join(', ')
  if (from.read === 'excel')
    return { code: `pd.read_excel(${args([from.sheet ? `sheet_name=${literal(from.sheet)}` : ''])})`, imports: true }
  if (from.read === 'parquet') return { code: `pd.read_parquet(${path})`, imports: true }
  return { code: `pd.read_csv(${args(more)})`, imports: true }
}

/** The values of a column: without the index, so that nothing is put into another order. */
function valuesOf({ from }: Settings, { at, name, named }: Column): string {
  if (from.of === 'variable' && from.form === 'polars')
    return named ? `table[${literal(name)}].to_numpy()` : `table.to_series(${at}).to_numpy()`
  if (at < 0) return 'table.index.map(str) if table.index.nlevels > 1 else table.index.array'
  return named ? `table[${literal(name)}].array` : `table.iloc[:, ${at}].array`
}

const indent = (lines: string[], by = 1) => lines.map((l) => (l ? '    '.repeat(by) + l : l))

/** Fills {name} in, of a sentence that Python prints. */
export const printed = (sentence: string, values: Record<string, string>): string => {
  const parts = sentence.split(/(\{\w+\})/).filter(Boolean)
  const code = parts.map((p) => {
    const value = values[p.slice(1, -1)]
    return p.startsWith('{') && value !== undefined ? value : literal(p)
  })
  return `print(${code.join(', ')}, sep="")`
}

export interface Plan {
  s: Settings
  said: Said
  /** The names of the columns of `data` that have the values. */
  ys: string[]
  /** What the values are called. */
  names: string[]
  /** Rows are put together. */
  together: boolean
  nameOf: (c: Column) => string
}

function planOf(asked: Settings, said: Said): Plan {
  // Bars of several rows of one group would stand on each other.
  const summed = asked.use === 'none' && asked.color !== null && (asked.kind === 'bar' || asked.kind === 'area')
  const s = summed ? { ...asked, use: 'sum' as const } : asked
  const alone = s.kind === 'histogram' || s.kind === 'box' || s.kind === 'scatter'
  const together = !alone && s.use !== 'none'
  const counts = together && s.use === 'count'
  const single = s.color !== null || s.kind === 'scatter' || s.kind === 'pie' || (s.kind === 'box' && s.x !== null)
  const y = counts ? [] : s.y.slice(0, single ? 1 : mostSeries)
  const nameOf = (c: Column) => c.name.trim() || (c.at < 0 ? said.index : `${c.at + 1}`)
  return { s, said, ys: y.map((_, i) => `y${i + 1}`), names: y.map(nameOf), together, nameOf }
}

/** Whether the kind has an x. */
export const hasX = ({ kind }: Pick<Settings, 'kind'>) => kind !== 'histogram'
/** Whether single series can have colours by a column. */
export const hasColor = ({ kind }: Pick<Settings, 'kind'>) => kind !== 'box' && kind !== 'pie'

function cleaning(plan: Plan): string[] {
  const { s, said, ys } = plan
  const out: string[] = []
  const x = hasX(s) && s.x !== null
  if (x && s.as === 'date') {
    out.push(
      'if isinstance(data["x"].dtype, pd.PeriodDtype):',
      '    data["x"] = data["x"].dt.to_timestamp()',
      'elif data["x"].dtype.kind != "M":',
      '    data["x"] = pd.to_datetime(data["x"], format="mixed", errors="coerce")',
    )
  } else if (x && s.as === 'number') out.push('data["x"] = numbers(data["x"])')
  for (const y of ys) out.push(`data["${y}"] = numbers(data["${y}"])`)
  out.push('rows = len(data)')
  const all = [...(x ? ['x'] : []), ...(s.color && hasColor(s) ? ['group'] : [])]
  if (all.length) out.push(`data = data.dropna(subset=[${all.map((n) => `"${n}"`).join(', ')}])`)
  if (ys.length) out.push(`data = data.dropna(subset=[${ys.map((n) => `"${n}"`).join(', ')}], how="all")`)
  out.push('if data.empty:', `    ${printed(said.nothing, {})}`, '    return')
  out.push('if len(data) < rows:', `    ${printed(said.left, { n: 'rows - len(data)' })}`)
  if (x && s.as === 'text') out.push('data["x"] = data["x"].map(str).astype(object)')
  if (s.color && hasColor(s))
    out.push(
      'data["group"] = data["group"].map(str).astype(object)',
      `largest = list(data["group"].value_counts().index[:${mostSeries - 1}])`,
      `if data["group"].nunique() > ${mostSeries}:`,
      `    ${printed(said.others, { n: 'len(largest)', all: 'data["group"].nunique()' })}`,
      `    data["group"] = data["group"].where(data["group"].isin(largest), ${literal(said.other)})`,
      'groups = list(data["group"].value_counts(sort=True).index)',
    )
  return out
}

/** Makes a DataFrame of what is another table: a Series, one of polars, or an array. */
const framing = [
  'if hasattr(table, "to_frame"):',
  '    table = table.to_frame()',
  'elif hasattr(table, "to_series"):',
  '    found = {i: table.to_series(i).to_numpy() for i in range(table.width)}',
  '    table = pd.DataFrame(found).set_axis(table.columns, axis=1)',
  'elif not isinstance(table, pd.DataFrame):',
  '    table = pd.DataFrame(table)',
  '',
]

/** The program of a chart, without its mark. It leaves nothing in the session but a name that begins with an underscore. */
export function generate(asked: Settings, said: Said): string {
  if (asked.removed) return 'pass\n'
  const plan = planOf(asked, said)
  const { s } = plan
  const source = sourceOf(s)
  const columns: string[] = []
  if (hasX(s) && s.x) columns.push(`"x": ${valuesOf(s, s.x)},`)
  const y = s.y.slice(0, plan.ys.length)
  for (const [i, c] of y.entries()) columns.push(`"${plan.ys[i]}": ${valuesOf(s, c)},`)
  if (s.color && hasColor(s)) columns.push(`"group": ${valuesOf(s, s.color)},`)
  const chosen = Object.entries(s.colors).map(([name, c]) => `${literal(name)}: ${literal(c)}`)
  return [
    'def _chart(table):',
    ...indent([
      'import matplotlib.pyplot as plt',
      'import pandas as pd',
      '',
      'def label(value, most=40):',
      '    """A short line, in which $ is a dollar and begins no formula."""',
      '    line = "".join(filter(str.isprintable, " ".join(str(value).split())))',
      '    line = line if len(line) <= most else line[:most - 1] + "…"',
      '    return ("\\u200a" if line.startswith("_") else "") + line.replace("$", r"\\$")',
      '',
      ...(plan.ys.length || s.as === 'number'
        ? [
            'def numbers(column):',
            '    if isinstance(column.dtype, pd.CategoricalDtype):',
            '        column = column.astype(object)',
            '    found = pd.to_numeric(column, errors="coerce").astype(float)',
            '    return found.where(found.abs() != float("inf"))',
            '',
          ]
        : []),
      ...(s.from.of === 'variable' && s.from.form === 'result' ? framing : []),
      'data = pd.DataFrame({',
      ...indent(columns),
      '})',
      ...cleaning(plan),
      '',
      `palette = [${colorsOf(s.palette)
        .map((c) => literal(c))
        .join(', ')}]`,
      `chosen = {${chosen.join(', ')}}`,
      '',
      'def color(name, i):',
      '    return chosen.get(str(name), palette[i % len(palette)])',
      '',
      ...drawing(plan),
    ]),
    '',
    ...(source.imports ? ['import pandas as pd', ''] : []),
    `_chart(${source.code})`,
    '',
  ].join('\n')
}
