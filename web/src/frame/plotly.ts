import { type Chart, csv, fromDataUrl, type Json, type Request, record } from './chart'
import { load } from './load'
import { colours, sans } from './theme'

interface Drawn extends HTMLElement {
  _fullData?: Json[]
}
interface Plotly {
  newPlot: (root: HTMLElement, figure: Json) => Promise<Drawn>
  toImage: (root: HTMLElement, options: Json) => Promise<string>
}

// What the smaller bundle knows; everything else is drawn by the larger one.
const cartesian = new Set(
  'bar box contour heatmap histogram histogram2d histogram2dcontour image pie scatter scatterternary violin'.split(' '),
)

export async function drawPlotly(root: HTMLElement, request: Request): Promise<Chart> {
  const figure = record(request.data)
  const data = (Array.isArray(figure.data) ? figure.data : []).map(record)
  const small = data.every((t) => t.type === undefined || cartesian.has(String(t.type)))
  const name = small ? 'plotly-cartesian' : 'plotly-strict'
  await load(name)
  const plotly = (window as unknown as { Plotly: Plotly }).Plotly
  const layout = styled(record(figure.layout), request)
  const drawn = await plotly.newPlot(root, {
    data: inTheme(data, record(figure.layout), request.theme),
    layout,
    frames: Array.isArray(figure.frames) ? figure.frames : undefined,
    config: {
      responsive: true,
      displaylogo: false,
      displayModeBar: request.fill ? true : 'hover',
      modeBarButtonsToRemove: ['toImage', 'sendDataToCloud', 'editInChartStudio', 'lasso2d', 'select2d'],
      showLink: false,
      showSendToCloud: false,
      plotlyServerURL: '',
      locale: 'en',
    },
  })
  return {
    export: async (kind) => {
      if (kind === 'csv') return csv(columns(drawn._fullData ?? data))
      const { width, height } = root.getBoundingClientRect()
      return fromDataUrl(await plotly.toImage(root, { format: kind, width, height, scale: kind === 'png' ? 2 : 1 }))
    },
  }
}

/** Whether a template has the kernel's series (looks.py), which are those of the light page. */
function ofKernel(look: Json): boolean {
  const first = Array.isArray(look.colorway) ? look.colorway[0] : ''
  return typeof first === 'string' && first.toLowerCase() === colours.light.series[0]
}

/** Traces with their colours as the page has them: Plotly Express writes those of the template into each. */
function inTheme(data: Json[], layout: Json, theme: Request['theme']): Json[] {
  if (theme === 'light' || !ofKernel(record(record(layout.template).layout))) return data
  const changed = (part: unknown): Json => {
    const kept = record(part)
    const at = typeof kept.color === 'string' ? colours.light.series.indexOf(kept.color.toLowerCase()) : -1
    return at < 0 ? kept : { ...kept, color: colours.dark.series[at] }
  }
  return data.map((trace) => ({
    ...trace,
    ...(trace.marker ? { marker: changed(trace.marker) } : {}),
    ...(trace.line ? { line: changed(trace.line) } : {}),
  }))
}

function styled(layout: Json, { theme, fill }: Request): Json {
  const c = colours[theme]
  const template = record(layout.template)
  const look = record(template.layout)
  const out: Json = { ...layout, autosize: true }
  // Plotly's own default look, which nobody asked for, and the kernel's become ours; any other is somebody's wish.
  if (layout.template === undefined || look.plot_bgcolor === '#E5ECF6' || ofKernel(look)) {
    const axis = { gridcolor: c.line, linecolor: c.line, zerolinecolor: c.line, tickcolor: c.line, automargin: true }
    const wall = { ...axis, backgroundcolor: c.ground, showbackground: true, gridwidth: 1 }
    const { bar: _, pie: __, ...kept } = record(template.data)
    out.template = {
      data: kept,
      layout: {
        ...look,
        paper_bgcolor: c.ground,
        plot_bgcolor: c.ground,
        font: { color: c.text, family: sans, size: 13 },
        title: { x: 0, xref: 'paper', font: { size: 16 } },
        colorway: c.series,
        xaxis: { ...record(look.xaxis), ...axis },
        yaxis: { ...record(look.yaxis), ...axis },
        scene: { xaxis: wall, yaxis: wall, zaxis: wall },
        hoverlabel: { align: 'left', bgcolor: c.ground, bordercolor: c.line, font: { color: c.text } },
        margin: { l: 56, r: 24, t: layout.title ? 56 : 32, b: 48 },
      },
    }
  }
  const height = Number(layout.height)
  if (fill) delete out.height
  else out.height = height >= 80 && height <= 2000 ? height : 420
  const width = Number(layout.width)
  if (fill || !(width <= window.innerWidth)) delete out.width
  return out
}

function columns(traces: Json[]): [string, ArrayLike<unknown>][] {
  const out: [string, ArrayLike<unknown>][] = []
  traces.slice(0, 200).forEach((trace, i) => {
    const name = String(trace.name ?? `trace ${i}`)
    for (const key of ['labels', 'values', 'x', 'y', 'z', 'r', 'theta', 'lat', 'lon', 'locations', 'text']) {
      const values = trace[key]
      if (Array.isArray(values) || ArrayBuffer.isView(values))
        out.push([traces.length > 1 ? `${name} ${key}` : key, values as unknown as ArrayLike<unknown>])
    }
  })
  return out
}
