import { useQuery } from '@tanstack/react-query'
import { useContext, useMemo, useState } from 'react'
import { Markdown, type OutputEvent, type Sheet, sheetOf, TablesContext } from '../output'
import { chartOf } from '../output/ChartFrame'
import { pictureOf } from '../output/Figure'
import { fold } from '../output/fold'
import type { Picture } from '../output/image'
import { useBlobUrl } from '../output/parts'
import { alike, mime, pieceOf, whole } from '../output/sheet'
import { isDataFrame, parseTable } from '../output/table'
import type { Terminal } from '../output/terminal'
import type { Mime } from '../output/types'
import { plain } from '../output/words'
import { useWords } from '../words'
import { PrintChart } from './PrintChart'
import { usePending } from './pending'
import css from './print.module.css'
import { mostRows, type Printed, printed, printedSheet } from './table'

const mostLines = 200
const longestText = 20_000

/** Text of a bounded length, on paper. */
export function PrintText({ text, bad = false }: { text: string; bad?: boolean }) {
  const w = useWords()
  const lines = text.slice(0, longestText).replace(/\n+$/, '').split('\n')
  const more = text.replace(/\n+$/, '').split('\n').length - Math.min(lines.length, mostLines)
  if (!text.trim()) return null
  return (
    <pre className={css.text} data-bad={bad || undefined}>
      {lines.slice(0, mostLines).join('\n')}
      {more > 0 ? `\n… ${w.print.lines(more)}` : text.length > longestText ? '…' : ''}
    </pre>
  )
}

function textOf({ head, tail, dropped }: Terminal): string {
  const gap = dropped > 0 ? [{ text: '…' }] : []
  return [...head, ...gap, ...tail].map((l) => l.text).join('\n')
}

function PrintTable({ table }: { table: Printed }) {
  const w = useWords()
  const more = w.print.more(table.moreRows, table.moreColumns)
  return (
    <>
      <table className={css.table}>
        <thead>
          <tr>
            {table.heads.map((h, c) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: columns may have the same name
              <th key={c} scope="col" data-number={h.number || undefined}>
                {h.text}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row, r) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: rows have no other name
            <tr key={r}>
              {row.map((text, c) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: cells have no other name
                <td key={c} data-number={table.heads[c]?.number || undefined}>
                  {text}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {more && <p className={css.more}>{more}</p>}
    </>
  )
}

/** A table of a kernel. Rows that did not come with the output are asked for while its session is awake. */
function PrintSheet({ sheet }: { sheet: Sheet }) {
  const tables = useContext(TablesContext)
  const wanted = !!sheet.name && !whole(sheet) && sheet.rows.length < mostRows && tables?.state === 'ready'
  const rest = useQuery({
    queryKey: ['printed', sheet],
    enabled: wanted,
    retry: false,
    gcTime: 0,
    queryFn: async ({ signal }) => {
      const query = { offset: 0, limit: mostRows, sort: '', descending: false, filter: '' }
      const piece = pieceOf(await tables?.reader.read(sheet.name, query, signal))
      return piece && alike(sheet, piece) ? piece : null
    },
  })
  usePending(wanted && rest.isPending)
  const table = useMemo(() => printedSheet(rest.data ?? sheet), [rest.data, sheet])
  return <PrintTable table={table} />
}

function PrintPicture({ picture, alt }: { picture: Picture; alt: string }) {
  const url = useBlobUrl(picture.bytes, picture.type)
  const [drawn, setDrawn] = useState(false)
  usePending(!drawn)
  return (
    <figure className={css.figure}>
      {url && (
        <img
          src={url}
          alt={alt}
          width={picture.width || undefined}
          onLoad={() => setDrawn(true)}
          onError={() => setDrawn(true)}
        />
      )}
    </figure>
  )
}

const joined = (value: unknown) =>
  typeof value === 'string'
    ? value
    : Array.isArray(value) && value.every((v) => typeof v === 'string')
      ? value.join('')
      : ''

function PrintBundle({ data, texts }: { data: Mime; texts: boolean }) {
  const w = useWords()
  const found = useMemo(() => {
    const still = pictureOf(data)
    const html = joined(data['text/html'])
    return {
      picture: still && !('problem' in still) ? still : null,
      chart: chartOf(data),
      sheet: sheetOf(data[mime]),
      table: isDataFrame(html) ? parseTable(html) : null,
    }
  }, [data])
  const { picture, chart, sheet, table } = found
  if (picture) return <PrintPicture picture={picture} alt={w.print.figure} />
  if (chart)
    return (
      <PrintChart kind={chart.kind} spec={chart.spec} show={(p) => <PrintPicture picture={p} alt={w.print.figure} />} />
    )
  if (sheet) return <PrintSheet sheet={sheet} />
  if (table) return <PrintTable table={printed(table)} />
  const markdown = joined(data['text/markdown'])
  if (markdown) return <Markdown text={markdown} />
  if (!texts) return null
  const json = data['application/json']
  return <PrintText text={joined(data['text/plain']) || (json === undefined ? '' : JSON.stringify(json, null, 2))} />
}

/** What a step gave, on paper; without texts only its figures and tables. */
export function PrintOutput({ items, texts }: { items: readonly OutputEvent[]; texts: boolean }) {
  const blocks = useMemo(() => fold(items), [items])
  return blocks.map((b) => {
    if (b.kind === 'bundle') return <PrintBundle key={b.key} data={b.data} texts={texts} />
    if (!texts) return null
    if (b.kind === 'terminal') return <PrintText key={b.key} text={textOf(b.terminal)} bad={b.name === 'stderr'} />
    if (b.kind === 'error') return <PrintText key={b.key} text={plain(`${b.event.name}: ${b.event.value}`, 2000)} bad />
    return null
  })
}
