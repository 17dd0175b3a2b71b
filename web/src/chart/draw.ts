import { mostPlaces, mostPoints, type Plan, printed } from './generate'
import { literal, longestTitle } from './settings'

// The second half of a chart's code: its rows put together, and drawn.

/** Makes `wide`: a row for each x, and a column for each series, in `series`. */
function widening({ s, said, ys, names, together }: Plan): string[] {
  const keys = s.color && s.kind !== 'pie' ? '["x", "group"]' : '"x"'
  const first = literal(said.count)
  const split = s.color && s.kind !== 'pie'
  if (!together)
    return [
      `wide = data[[${ys.map((y) => `"${y}"`).join(', ')}]].set_axis(data["x"])`,
      `series = [${names.map(literal).join(', ')}]`,
    ]
  if (s.use === 'count')
    return split
      ? [`wide = data.groupby(${keys}, sort=False).size().unstack(fill_value=0)[groups]`, 'series = groups']
      : [`wide = data.groupby(${keys}, sort=False).size().to_frame()`, `series = [${first}]`]
  const how = s.use === 'mean' ? 'mean()' : 'sum(min_count=1)'
  return split
    ? [`wide = data.groupby(${keys}, sort=False)["${ys[0]}"].${how}.unstack()[groups]`, 'series = groups']
    : [
        `wide = data.groupby(${keys}, sort=False)[[${ys.map((y) => `"${y}"`).join(', ')}]].${how}`,
        `series = [${names.map(literal).join(', ')}]`,
      ]
}

function ordering({ s, said }: Plan): string[] {
  const along = s.kind === 'line' || s.kind === 'area'
  const out: string[] = []
  const most = along && s.as !== 'text' ? 0 : Math.min(s.top || mostPlaces, mostPlaces)
  if (most && s.kind !== 'pie')
    out.push(
      `if len(wide) > ${most}:`,
      `    ${printed(said.most, { n: `${most}`, all: 'len(wide)' })}`,
      '    sizes = wide.abs().sum(axis=1).to_numpy()',
      `    wide = wide.iloc[sorted(sizes.argsort(kind="stable")[::-1][:${most}])]`,
    )
  if (along && s.as !== 'text') out.push('wide = wide.sort_index(kind="stable")')
  else if (s.sort === 'x') out.push('wide = wide.sort_index(kind="stable")')
  else if (s.sort !== 'table')
    out.push(`wide = wide.iloc[(${s.sort === 'down' ? '-' : ''}wide.sum(axis=1)).to_numpy().argsort(kind="stable")]`)
  return out
}

/** Names below the bars; all of them while there is room. */
const ticks = (s: Plan['s']) => [
  s.as === 'date'
    ? 'names = [value.strftime("%Y-%m-%d") if value == value.normalize() else value.strftime("%Y-%m-%d %H:%M") for value in wide.index]'
    : s.as === 'number'
      ? 'names = [f"{value:g}" for value in wide.index]'
      : 'names = [label(value) for value in wide.index]',
  'step = len(names) // 40 + 1',
  'turned = len(names) > 30 or sum(map(len, names)) > 70',
  'ax.set_xticks(range(0, len(names), step), names[::step], rotation=45 if turned else 0, ha="right" if turned else "center")',
]

const legend = (when: string) => [`if ${when}:`, '    ax.legend(frameon=False)']

const begin = 'fig, ax = plt.subplots(figsize=(8, 4.5))'

function bars(): string[] {
  return [
    begin,
    'width = 0.8 / len(series)',
    'for i, name in enumerate(series):',
    '    places = [at - 0.4 + (i + 0.5) * width for at in range(len(wide))]',
    '    ax.bar(places, wide.iloc[:, i], width, label=label(name), color=color(name, i))',
  ]
}

function lines({ s }: Plan): string[] {
  const places = s.as === 'text' ? 'range(len(wide))' : 'wide.index'
  if (s.kind === 'area')
    return [
      begin,
      `ax.stackplot(${places}, wide.fillna(0).T.to_numpy(), labels=[label(name) for name in series],`,
      '             colors=[color(name, i) for i, name in enumerate(series)])',
    ]
  return [
    begin,
    'for i, name in enumerate(series):',
    '    there = wide.iloc[:, i].notna().to_numpy()',
    `    x = [at for at, is_there in enumerate(there) if is_there]`,
    `    ax.plot(${s.as === 'text' ? 'x' : 'wide.index[x]'}, wide.iloc[x, i], label=label(name), color=color(name, i), marker="o" if len(x) < 3 else None)`,
  ]
}

/** A line for each group, of rows as they are. */
function apart({ s, ys }: Plan): string[] {
  return [
    begin,
    ...(s.as === 'text'
      ? ['codes, wide = pd.factorize(data["x"], sort=True)', 'wide = pd.DataFrame(index=wide)', 'data["x"] = codes']
      : []),
    'data = data.sort_values("x", kind="stable")',
    'series = groups',
    'for i, name in enumerate(series):',
    `    part = data[data["group"] == name].dropna(subset=["${ys[0]}"])`,
    '    ax.plot(part["x"], part["y1"], label=label(name), color=color(name, i), marker="o" if len(part) < 3 else None)',
    ...(s.as === 'text' ? ticks(s) : []),
    ...legend('len(series) > 1'),
  ]
}

function scatter({ s, said, names }: Plan): string[] {
  const split = s.color !== null
  return [
    `if len(data) > ${mostPoints}:`,
    `    ${printed(said.sampled, { n: `"{:,}".format(${mostPoints})`, all: '"{:,}".format(len(data))' })}`,
    `    data = data.sample(${mostPoints}, random_state=0)`,
    begin,
    ...(s.as === 'text'
      ? ['codes, found = pd.factorize(data["x"], sort=True)', 'wide = pd.DataFrame(index=found)', 'data["x"] = codes']
      : []),
    ...(split
      ? [
          'for i, name in enumerate(groups):',
          '    part = data[data["group"] == name]',
          '    ax.scatter(part["x"], part["y1"], s=14, alpha=0.7, linewidths=0, label=label(name), color=color(name, i))',
          ...legend('len(groups) > 1'),
        ]
      : [
          `ax.scatter(data["x"], data["y1"], s=14, alpha=0.7, linewidths=0, color=color(${literal(names[0] ?? '')}, 0))`,
        ]),
    ...(s.as === 'text' ? ticks(s) : []),
  ]
}

function histogram({ s, ys, names }: Plan): string[] {
  return [
    'import numpy as np',
    '',
    ...(s.color
      ? ['parts = [(name, data.loc[data["group"] == name, "y1"].dropna()) for name in groups]']
      : [
          `parts = [(name, data[column].dropna()) for name, column in [${ys.map((y, i) => `(${literal(names[i] ?? '')}, "${y}")`).join(', ')}]]`,
        ]),
    'edges = np.histogram_bin_edges(np.concatenate([values for _, values in parts]), 30)',
    begin,
    'for i, (name, values) in enumerate(parts):',
    '    ax.hist(values, edges, label=label(name), color=color(name, i), alpha=1 if len(parts) == 1 else 0.6)',
    ...legend('len(parts) > 1'),
  ]
}

function boxes({ s, said, ys, names }: Plan): string[] {
  const most = Math.min(s.top || 20, 50)
  const sorted =
    s.sort === 'x'
      ? 'places = sorted(places)'
      : s.sort === 'table'
        ? 'places = [place for place in data["x"].unique() if place in set(places)]'
        : `places = sorted(places, key=lambda place: data.loc[data["x"] == place, "y1"].median(), reverse=${s.sort === 'down' ? 'True' : 'False'})`
  const form = s.as === 'date' ? 'str(place.date())' : s.as === 'number' ? 'f"{place:g}"' : 'place'
  return [
    ...(s.x
      ? [
          'counts = data["x"].value_counts()',
          `places = list(counts.index[:${most}])`,
          `if len(counts) > ${most}:`,
          `    ${printed(said.most, { n: `${most}`, all: 'len(counts)' })}`,
          sorted,
          `parts = [(${form}, data.loc[data["x"] == place, "y1"].dropna()) for place in places]`,
        ]
      : [
          `parts = [(name, data[column].dropna()) for name, column in [${ys.map((y, i) => `(${literal(names[i] ?? '')}, "${y}")`).join(', ')}]]`,
        ]),
    begin,
    'drawn = ax.boxplot([values for _, values in parts], patch_artist=True, widths=0.6)',
    'for i, (box, (name, _)) in enumerate(zip(drawn["boxes"], parts)):',
    `    box.set(facecolor=${s.x ? `color(${literal(names[0] ?? '')}, 0)` : 'color(name, i)'}, alpha=0.75)`,
    'names = [label(name) for name, _ in parts]',
    'turned = sum(map(len, names)) > 70',
    'ax.set_xticks(range(1, len(names) + 1), names, rotation=45 if turned else 0, ha="right" if turned else "center")',
  ]
}

function pie({ s, said }: Plan): string[] {
  const most = Math.min(s.top || 8, 20)
  const form = s.as === 'date' ? 'str(at.date())' : s.as === 'number' ? 'f"{at:g}"' : 'str(at)'
  return [
    'if (wide < 0).any(axis=None):',
    `    ${printed(said.negative, {})}`,
    '    return',
    'slices = wide.iloc[:, 0].dropna()',
    'slices = slices[slices > 0]',
    'if slices.empty:',
    `    ${printed(said.nothing, {})}`,
    '    return',
    'largest = slices.iloc[(-slices).to_numpy().argsort(kind="stable")]',
    `names = [${form} for at in largest.index[:${most}]]`,
    `sizes = list(largest[:${most}])`,
    `if len(largest) > ${most}:`,
    `    names, sizes = names + [${literal(said.other)}], sizes + [largest.iloc[${most}:].sum()]`,
    begin,
    'ax.pie(sizes, labels=[label(name) for name in names], colors=[color(name, i) for i, name in enumerate(names)],',
    '       autopct="%1.0f%%", startangle=90, counterclock=False)',
  ]
}

/** What stands beside an axis: the values by their name, and how they were put together. */
function axes({ s, said, names, together, nameOf }: Plan): string[] {
  if (s.kind === 'pie') return []
  const out: string[] = []
  const label = (set: 'set_xlabel' | 'set_ylabel', text: string) => out.push(`ax.${set}(label(${literal(text)}))`)
  const one = names.length === 1 ? (names[0] ?? '') : ''
  if (s.kind === 'histogram') {
    if (one) label('set_xlabel', one)
    label('set_ylabel', said.count)
    return out
  }
  if (s.x) label('set_xlabel', nameOf(s.x))
  if (together && s.use === 'count') label('set_ylabel', said.count)
  else if (one) {
    const how = together && s.use !== 'none' ? (s.use === 'mean' ? said.mean : said.sum) : '{y}'
    label(
      'set_ylabel',
      how.replace('{y}', () => one),
    )
  }
  return out
}

export function drawing(plan: Plan): string[] {
  const { s } = plan
  const along = s.kind === 'line' || s.kind === 'area'
  const wide = s.kind === 'bar' || along || s.kind === 'pie'
  const bare = wide && !plan.together && s.color !== null && s.kind !== 'pie'
  const draw = bare
    ? apart(plan)
    : s.kind === 'scatter'
      ? scatter(plan)
      : s.kind === 'histogram'
        ? histogram(plan)
        : s.kind === 'box'
          ? boxes(plan)
          : [
              ...widening(plan),
              ...ordering(plan),
              ...(s.kind === 'bar' ? bars() : s.kind === 'pie' ? pie(plan) : lines(plan)),
              ...(s.kind === 'bar' || (along && s.as === 'text') ? ticks(s) : []),
              ...(s.kind === 'pie' ? [] : legend('len(series) > 1')),
            ]
  return [
    ...draw,
    ...(s.title.trim() ? [`ax.set_title(label(${literal(s.title.trim())}, ${longestTitle}))`] : []),
    ...axes(plan),
    'fig.tight_layout()',
    'plt.show()',
  ]
}
