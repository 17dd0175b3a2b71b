import { lazy, Suspense, use, useCallback, useMemo } from 'react'
import { fileAddress } from '../api/base'
import { client, data, type Schemas } from '../api/client'
import { ChartingContext } from '../chart/run'
import { originOfFile } from '../chart/source'
import { ChartOfContext, Code, Markdown, type Reader, type Sheet, sheetOf, type Tables, TablesContext } from '../output'
import { Segments } from '../parts'
import { bytes, plainName } from '../parts/format'
import { useWords } from '../words'
import { PreviewImage } from './PreviewImage'
import css from './panels.module.css'

const SheetGrid = lazy(async () => ({ default: (await import('../output/Grid')).SheetGrid }))

type Seen = Schemas['Preview']

interface Props {
  session: string
  path: string
  seen: Seen
  onSheet: (sheet: string) => void
  onAgain: () => void
  onClose: () => void
}

/** Pages of a table in a file. The server neither sorts nor filters it. */
function readerOf(session: string, path: string, sheet: string | undefined): Reader {
  return {
    fixed: true,
    read: async (_, { offset, limit }, signal) => {
      const { table } = await data(
        client.GET('/sessions/{session}/preview', {
          params: { path: { session }, query: { path, offset, limit, ...(sheet ? { sheet } : {}) } },
          signal,
        }),
      )
      return table && { ...table, total: table.total ?? table.offset + table.rows.length, matching: table.total ?? 0 }
    },
    profile: async () => null,
  }
}

function TableIn({ session, path, seen, onAgain, onClose }: Omit<Props, 'onSheet'>) {
  const w = useWords()
  const charts = use(ChartingContext)
  const from = useMemo(() => originOfFile(path, seen), [path, seen])
  const chart = useCallback(
    (sheet: Sheet) => from && charts?.open({ name: path, find: async () => ({ from, sheet }), onDrawn: onClose }),
    [charts, from, path, onClose],
  )
  const tables = useMemo<Tables>(
    () => ({ reader: readerOf(session, path, seen.sheet), state: 'ready' }),
    [session, path, seen.sheet],
  )
  const sheet = useMemo(() => {
    const { table } = seen
    return table ? sheetOf({ ...table, total: table.total ?? table.rows.length, name: 'file' }) : null
  }, [seen])
  if (!sheet) return <p className={css.quiet}>{w.variables.noTable}</p>
  const uncounted = seen.table?.total == null
  return (
    <TablesContext value={uncounted ? null : tables}>
      <ChartOfContext value={charts && from ? chart : null}>
        <Suspense fallback={<p className={css.quiet}>{w.loading}</p>}>
          <SheetGrid sheet={sheet} onAgain={onAgain} />
        </Suspense>
      </ChartOfContext>
      {uncounted && <p className={css.quiet}>{w.preview.cut}</p>}
    </TablesContext>
  )
}

/** A path beside the file, in its folder. */
function beside(path: string, to: string): string | null {
  const parts = path.split('/').slice(0, -1)
  for (const part of to.split('/')) {
    if (part === '..') {
      if (!parts.length) return null
      parts.pop()
    } else if (part && part !== '.') parts.push(part)
  }
  return parts.join('/')
}

function Text({ session, path, seen }: { session: string; path: string; seen: Seen }) {
  const w = useWords()
  const text = seen.text ?? ''
  const name = path.toLowerCase()
  if (!text) return <p className={css.quiet}>{w.preview.empty}</p>
  return (
    <>
      {/\.(md|markdown)$/.test(name) ? (
        <Markdown
          text={text}
          files={(to) => {
            const found = /\.(png|jpe?g|gif|webp)$/i.test(to) ? beside(path, to) : null
            return found ? fileAddress(session, found) : null
          }}
        />
      ) : (
        <Code text={text} language={/\.pyi?$/.test(name) ? 'python' : 'text'} />
      )}
      {seen.truncated && <p className={css.quiet}>{w.preview.cut}</p>}
    </>
  )
}

function More({ n }: { n: number | undefined }) {
  const w = useWords()
  if (!n) return null
  return <p className={css.quiet}>{n < 0 ? w.preview.moreUncounted : w.preview.more(n)}</p>
}

function Cells({ seen }: { seen: Seen }) {
  const w = useWords()
  return (
    <>
      {(seen.cells ?? []).map((c, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: cells have no other name
        <section key={i} className={css.cellOf} aria-label={w.preview.cell(i + 1)}>
          {c.kind === 'markdown' ? (
            <Markdown text={c.source} />
          ) : (
            <Code text={c.source} language={c.kind === 'code' ? 'python' : 'text'} />
          )}
          {c.outputs.map((o, n) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: outputs have no other name
            <pre key={n}>{o}</pre>
          ))}
        </section>
      ))}
      <More n={seen.more} />
    </>
  )
}

function Contents({ seen }: { seen: Seen }) {
  const w = useWords()
  const tables = seen.type === 'sqlite'
  return (
    <>
      <div className={css.listing}>
        <table>
          <thead>
            <tr>
              <th scope="col">{w.preview.name}</th>
              {tables && <th scope="col">{w.preview.columns}</th>}
              <th scope="col">{tables ? w.preview.rows : w.preview.size}</th>
            </tr>
          </thead>
          <tbody>
            {tables
              ? (seen.tables ?? []).map((t) => (
                  <tr key={t.name}>
                    <th scope="row">
                      <bdi>{plainName(t.name)}</bdi>
                    </th>
                    <td>
                      <bdi>{t.columns.map((c) => `${plainName(c.name)} ${plainName(c.type)}`).join(', ')}</bdi>
                    </td>
                    <td>{t.rows ?? ''}</td>
                  </tr>
                ))
              : (seen.entries ?? []).map((e, i) => (
                  // biome-ignore lint/suspicious/noArrayIndexKey: an archive can have a path twice
                  <tr key={i}>
                    <th scope="row">
                      <bdi>{plainName(e.path)}</bdi>
                    </th>
                    <td>{e.folder ? '' : bytes(e.size)}</td>
                  </tr>
                ))}
          </tbody>
        </table>
      </div>
      <More n={seen.more} />
    </>
  )
}

const hexLines = (hex: string) =>
  (hex.match(/.{1,32}/g) ?? [])
    .map((line, i) => `${(i * 16).toString(16).padStart(4, '0')}  ${(line.match(/../g) ?? []).join(' ')}`)
    .join('\n')

/** What a file holds, by its kind. All of it comes from the sandbox: it is shown as text, cells and pixels alone. */
export function PreviewBody(props: Props) {
  const w = useWords()
  const { seen, session, path, onSheet } = props
  switch (seen.kind) {
    case 'table':
      return (
        <>
          {(seen.sheets?.length ?? 0) > 1 && (
            <div className={css.sheets}>
              <Segments
                label={w.preview.sheets}
                value={seen.sheet ?? seen.sheets?.[0] ?? ''}
                options={(seen.sheets ?? []).map((s) => ({ id: s, name: plainName(s) }))}
                onChange={onSheet}
              />
            </div>
          )}
          <TableIn {...props} />
        </>
      )
    case 'text':
      return <Text session={session} path={path} seen={seen} />
    case 'image':
      return <PreviewImage session={session} path={path} size={seen.size} />
    case 'notebook':
      return <Cells seen={seen} />
    case 'archive':
      return <Contents seen={seen} />
    case 'pdf':
      return (
        <>
          <p className={css.quiet}>
            {[seen.pages == null ? '' : w.preview.pages(seen.pages), seen.text ? w.preview.firstPage : w.preview.noText]
              .filter(Boolean)
              .join(' · ')}
          </p>
          {seen.text && <p className={css.preview}>{seen.text}</p>}
        </>
      )
    default:
      return (
        <>
          <p className={css.quiet}>{seen.size ? w.preview.binary : w.preview.empty}</p>
          {seen.hex && <Code text={hexLines(seen.hex)} language="text" />}
        </>
      )
  }
}
