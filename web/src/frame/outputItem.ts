import { showHtml } from './html'

// One output inside an Output widget.

// biome-ignore lint/suspicious/noControlCharactersInRegex: that is what is looked for
const signs = /\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)/g

const joined = (v: unknown): string | null =>
  typeof v === 'string' ? v : Array.isArray(v) && v.every((l) => typeof l === 'string') ? v.join('') : null

/** Text as a terminal leaves it: what a line was overwritten with. */
export const settled = (text: string) =>
  text
    .replace(signs, '')
    .split('\n')
    .map((line) => line.replace(/\r+$/, '').split('\r').at(-1))
    .join('\n')

export interface Drawers {
  plotly: (box: HTMLElement, figure: unknown) => Promise<unknown>
  view?: ((box: HTMLElement, id: string) => Promise<void>) | undefined
}

function pre(box: HTMLElement, text: string, bad = false) {
  const el = document.createElement('pre')
  el.textContent = settled(text)
  if (bad) el.className = 'cove-bad'
  box.append(el)
}

async function picture(box: HTMLElement, address: string, metadata: unknown) {
  const img = document.createElement('img')
  const { width, height } = (metadata ?? {}) as { width?: unknown; height?: unknown }
  if (typeof width === 'number' && width > 0 && width < 5000) img.width = width
  if (typeof height === 'number' && height > 0 && height < 5000) img.style.height = 'auto'
  img.alt = ''
  img.src = address
  await img.decode().catch(() => {})
  box.append(img)
}

export async function showItem(box: HTMLElement, item: Record<string, unknown>, draw: Drawers) {
  if (item.output_type === 'stream') return pre(box, joined(item.text) ?? '', item.name === 'stderr')
  if (item.output_type === 'error') {
    const lines = joined((Array.isArray(item.traceback) ? item.traceback : []).map((l) => `${l}\n`))
    return pre(box, lines || `${item.ename}: ${item.evalue}`, true)
  }
  const data = (item.data ?? {}) as Record<string, unknown>
  const metadata = (item.metadata ?? {}) as Record<string, unknown>
  const view = data['application/vnd.jupyter.widget-view+json'] as { model_id?: unknown } | undefined
  if (typeof view?.model_id === 'string' && draw.view) return draw.view(box, view.model_id)
  const figure = data['application/vnd.plotly.v1+json']
  if (figure !== null && typeof figure === 'object') {
    await draw.plotly(box, figure)
    return
  }
  for (const type of ['image/png', 'image/jpeg', 'image/gif', 'image/webp']) {
    const bytes = joined(data[type])?.replace(/\s/g, '')
    if (bytes && /^[A-Za-z0-9+/=]+$/.test(bytes)) return picture(box, `data:${type};base64,${bytes}`, metadata[type])
  }
  const svg = joined(data['image/svg+xml'])
  if (svg) return picture(box, `data:image/svg+xml,${encodeURIComponent(svg)}`, null)
  const html = joined(data['text/html'])
  if (html) return showHtml(box, html, false)
  pre(box, joined(data['text/plain']) ?? '')
}
