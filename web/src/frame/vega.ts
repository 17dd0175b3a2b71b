import { loader, type Spec } from 'vega'
import embed, { type VisualizationSpec } from 'vega-embed'
import { expressionInterpreter } from 'vega-interpreter'
import { type Chart, csv, fromDataUrl, type Json, type Request, record } from './chart'
import { colours, sans } from './theme'

// A bundle of its own, loaded by main.ts when a chart needs it.

const refuse = () => Promise.reject(new Error('Nothing is loaded from outside.'))

async function draw(root: HTMLElement, mode: 'vega' | 'vega-lite', request: Request): Promise<Chart> {
  const { $schema: _, ...asked } = record(request.data)
  const spec = request.fill && mode === 'vega-lite' ? whole(asked) : asked
  const c = colours[request.theme]
  const nothing = { ...loader(), load: refuse, sanitize: refuse, http: refuse, file: refuse }
  const axis = { labelColor: c.muted, titleColor: c.text, gridColor: c.line, domainColor: c.line, tickColor: c.line }
  const { view } = await embed(root, spec as unknown as VisualizationSpec & Spec, {
    mode,
    actions: false,
    ast: true,
    expr: expressionInterpreter,
    loader: nothing,
    renderer: 'svg',
    defaultStyle: true,
    hover: true,
    config: {
      background: c.ground,
      font: sans,
      title: { color: c.text, anchor: 'start', fontSize: 16 },
      axis,
      legend: { labelColor: c.muted, titleColor: c.text },
      header: { labelColor: c.muted, titleColor: c.text },
      range: { category: c.series },
      view: { stroke: c.line },
      text: { color: c.text },
      mark: { color: c.series[0] },
      rule: { color: c.muted },
    } as Json,
    tooltip: { theme: request.theme },
  })
  return {
    export: async (kind) => {
      if (kind === 'png') return fromDataUrl(await view.toImageURL('png', 2))
      if (kind === 'svg') return new Blob([await view.toSVG()], { type: 'image/svg+xml' })
      return csv(
        table(Object.values(record(view.getState({ data: (name) => !!name && !name.includes('_marks') }).data))),
      )
    },
  }
}

/** A single view as large as the window, as Vega-Lite can have it: grids of views have their own sizes. */
function whole(spec: Json): Json {
  const { row, column, facet } = record(spec.encoding)
  if (!(spec.mark || spec.layer) || row || column || facet) return spec
  return { ...spec, width: 'container', height: 'container', autosize: { type: 'fit', contains: 'padding' } }
}

/** The largest of the data sets. */
function table(sets: unknown[]): [string, ArrayLike<unknown>][] {
  const rows = sets
    .filter((s): s is unknown[] => Array.isArray(s))
    .reduce((a, b) => (b.length > a.length ? b : a), [])
    .map(record)
  const names = Object.keys(rows[0] ?? {}).filter((n) => !n.startsWith('_'))
  return names.map((n) => [n, rows.map((r) => r[n])])
}

;(window as unknown as { coveVega: typeof draw }).coveVega = draw
