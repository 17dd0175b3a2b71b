import type { Chart, Request } from './chart'
import { showHtml } from './html'
import { load } from './load'
import { showItem } from './outputItem'
import { drawPlotly } from './plotly'
import { clamp, type Export, type In, type Move, type Out, readIn } from './protocol'
import { colours, sans } from './theme'
import type { Closed, Show, Shown } from './widgetState'

// The only script of /frame: draws what the page sends, in an origin of its own. Nothing here can reach the page, its
// cookies or the network.

let nonce: string | null = null
let chart: Chart | null = null
let widgets: Promise<Widgets> | null = null // that are drawn
let said = 0

interface Widgets {
  take: (models: unknown, closed: Closed, quiet: boolean) => void
  done: (n: number) => void
}
type DrawWidgets = (
  root: HTMLElement,
  shown: Shown,
  theme: 'light' | 'dark',
  show: Show,
  tell: (move: Move) => void,
) => Promise<Widgets>

const root = document.createElement('div')
root.id = 'root'

function tell(out: Omit<Out, 'cove'>, transfer: Transferable[] = []) {
  if (nonce !== null) window.parent.postMessage({ cove: nonce, ...out }, '*', transfer)
}

function tellHeight() {
  const height = clamp(Math.max(root.getBoundingClientRect().height, root.scrollHeight))
  if (height === said) return
  said = height
  tell({ height })
}

function message(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, 500)
}

// A drawing of Vega that does not fill the window stands in its middle; one that is larger is scrolled.
const middle = '#root.vega-embed{display:grid;place-content:safe center;width:100%;overflow:auto}'

function dress({ theme, fill }: Request, html: boolean) {
  const c = colours[theme]
  const style = document.createElement('style')
  style.textContent = `:root{color-scheme:${theme};background:${c.ground};color:${c.text}}
body{margin:0;font:14px/20px ${sans};overflow:${html || !fill ? 'auto' : 'hidden'}}
#root{${fill && !html ? 'height:100vh' : html ? 'padding:12px;box-sizing:border-box;display:flow-root' : 'display:flow-root'}}
${fill && !html ? middle : ''}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}th,td{padding:4px 12px;text-align:end}a{color:${c.series[0]}}`
  document.head.append(style)
}

async function render(request: NonNullable<In['render']>) {
  const html = request.kind === 'html' || request.kind === 'scripts'
  root.replaceChildren()
  dress(request, html)
  if (html) {
    if (typeof request.data !== 'string') throw new Error('no HTML')
    showHtml(root, request.data, request.kind === 'scripts')
  } else if (request.kind === 'plotly') chart = await drawPlotly(root, request)
  else if (request.kind === 'vega' || request.kind === 'vega-lite') {
    await load('vega')
    const draw = (window as unknown as { coveVega: (r: HTMLElement, k: string, q: Request) => Promise<Chart> }).coveVega
    chart = await draw(root, request.kind, request)
  } else if (request.kind === 'widgets') {
    widgets = drawWidgets(request)
    await widgets
  }
  tellHeight()
}

async function drawWidgets(request: Request) {
  await load('widgets')
  const draw = (window as unknown as { coveWidgets: DrawWidgets }).coveWidgets
  const plotly = (box: HTMLElement, data: unknown) => drawPlotly(box, { ...request, data, fill: false })
  const show: Show = (box, item, view) => showItem(box, item, { plotly, view })
  return await draw(root, request.data as Shown, request.theme, show, (move) => tell({ move }))
}

async function give(kind: Export) {
  const blob = await chart?.export(kind)
  if (!blob) return
  const bytes = await blob.arrayBuffer()
  tell({ exported: { kind, bytes } }, [bytes])
}

window.addEventListener('message', (event) => {
  if (event.source !== window.parent) return
  const got = readIn(event.data, nonce)
  if (!got) return
  nonce = got.cove
  if (got.render) render(got.render).catch((e) => tell({ failed: message(e) }))
  else if (got.widgets) {
    const { models, closed, done, quiet } = got.widgets
    void widgets
      ?.catch(() => null)
      .then((all) => {
        // What a move itself has told holds, unless there are newer ones.
        if (done !== undefined) all?.done(done)
        if (models || closed) all?.take(models ?? {}, closed ?? [], quiet === true)
      })
  } else if (got.export) give(got.export).catch((e) => tell({ failed: message(e) }))
})

document.addEventListener(
  'click',
  (event) => {
    const a = (event.target as Element | null)?.closest?.('a')
    if (!a) return
    const href = a.getAttribute('href') ?? a.getAttribute('xlink:href') ?? ''
    if (href.startsWith('#')) return
    event.preventDefault()
    tell({ link: href.slice(0, 8000) })
  },
  true,
)
document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape' && !event.isComposing) tell({ leave: true })
})
document.addEventListener('securitypolicyviolation', (event) => {
  if (event.effectiveDirective.startsWith('script-src') && event.blockedURI === 'inline') tell({ refused: true })
})

document.body.append(root)
new ResizeObserver(tellHeight).observe(root)
