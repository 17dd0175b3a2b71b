import { lazy, memo, Suspense, useContext, useMemo, useState } from 'react'
import { ChartFrame, chartOf } from './ChartFrame'
import { Figure } from './Figure'
import { Html } from './Html'
import { Json } from './Json'
import { Latex, Markdown } from './Markdown'
import css from './outputs.module.css'
import { sheetOf, mime as tableMime } from './sheet'
import { TerminalView } from './TerminalView'
import { countRows, isDataFrame, largeRows, parseTable } from './table'
import { Terminal } from './terminal'
import type { Mime, Theme } from './types'
import { ToldContext, widgetOf } from './widgets'
import { fill, plain, size, words } from './words'

const WidgetView = lazy(async () => ({ default: (await import('./WidgetView')).WidgetView }))
const Grid = lazy(() => import('./Grid'))
const SheetGrid = lazy(async () => ({ default: (await import('./Grid')).SheetGrid }))

interface Props {
  n: number
  data: Mime
  metadata: Mime
  theme: Theme
}

const pictures = ['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/svg+xml']

/** The richest of the forms that an output comes in, of those that are safe to show at once. */
export const Bundle = memo(function Bundle({ n, data, metadata, theme }: Props) {
  const chart = useMemo(() => chartOf(data), [data])
  const html = text(data['text/html'])
  const sheet = useMemo(() => sheetOf(data[tableMime]), [data])
  const frame = !sheet && html !== null && isDataFrame(html) ? html : null
  const large = useMemo(() => (frame !== null ? countRows(frame) : 0), [frame])
  const [agreed, setAgreed] = useState(false)
  const may = large <= largeRows || agreed
  const table = useMemo(() => (frame !== null && may ? parseTable(frame) : null), [frame, may])
  const written = text(data['text/plain'])
  const widget = useMemo(() => widgetOf(data), [data])
  const told = useContext(ToldContext)
  if (widget && told?.tells(widget)) {
    return (
      <Suspense fallback={<Plain text={written ?? ''} />}>
        <WidgetView id={widget} text={written ?? ''} theme={theme} />
      </Suspense>
    )
  }
  if (chart) return <ChartFrame kind={chart.kind} spec={chart.spec} data={data} number={n} theme={theme} />
  if (pictures.some((t) => data[t] !== undefined)) return <Figure number={n} data={data} metadata={metadata} />
  if (sheet) {
    return (
      <Suspense fallback={<Plain text={written ?? ''} />}>
        <SheetGrid sheet={sheet} number={n} />
      </Suspense>
    )
  }
  if (frame !== null && !may) {
    return (
      <p className={css.note}>
        {fill(words().largeTable, { n: large, size: size(frame.length) })}{' '}
        <button type="button" className={css.more} onClick={() => setAgreed(true)}>
          {words().showTable}
        </button>
      </p>
    )
  }
  if (table) {
    return (
      <Suspense fallback={<Plain text={written ?? ''} />}>
        <Grid table={table} number={n} />
      </Suspense>
    )
  }
  const markdown = text(data['text/markdown'])
  if (markdown !== null) return <Markdown text={markdown} />
  const latex = text(data['text/latex'])
  if (latex !== null && html === null) return <Latex text={latex} />
  if (html !== null) return <Html html={html} theme={theme} />
  if (data['application/json'] !== undefined) return <Json value={data['application/json']} />
  if (written !== null) return <Plain text={written} />
  const kinds = Object.keys(data)
    .slice(0, 5)
    .map((k) => plain(k, 60))
  return <p className={css.note}>{fill(words().unknownOutput, { kinds: kinds.join(', ') })}</p>
})

/** Text types may come as a list of lines. */
function text(value: unknown): string | null {
  if (typeof value === 'string') return value
  if (Array.isArray(value) && value.every((v) => typeof v === 'string')) return value.join('')
  return null
}

function Plain({ text }: { text: string }) {
  const terminal = useMemo(() => {
    const t = new Terminal()
    t.write(text)
    return t
  }, [text])
  return <TerminalView terminal={terminal} version={0} name="stdout" />
}
