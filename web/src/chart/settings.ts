// What a chart is made of, kept in a comment of its code: the page reads it to show the settings again. The code is a person's, and comes back from the server: all of it is checked.

export const kinds = ['bar', 'line', 'scatter', 'area', 'histogram', 'box', 'pie'] as const
export type Kind = (typeof kinds)[number]
export const uses = ['sum', 'mean', 'count', 'none'] as const
export type Use = (typeof uses)[number]
export const sorts = ['x', 'down', 'up', 'table'] as const
export type Sort = (typeof sorts)[number]
export const palettes = ['page', 'clear', 'warm', 'cool', 'grey'] as const
export type Palette = (typeof palettes)[number]
export type As = 'date' | 'number' | 'text'

/** A column by its place, and by its name where code can say that. The index has the place -1. */
export interface Column {
  at: number
  name: string
  /** The name alone says which it is. */
  named: boolean
}

/** A variable by its kind; `result` is what a cell's last line was, of which the page does not know the kind. */
export type Origin =
  | { of: 'variable'; name: string; form: 'frame' | 'series' | 'array' | 'polars' | 'result' }
  | {
      of: 'file'
      path: string
      read: 'csv' | 'excel' | 'parquet'
      separator?: string
      encoding?: string
      sheet?: string
    }

export interface Settings {
  /** The same for all versions of a chart. */
  id: string
  /** The turn that it stands after. */
  after?: string
  removed?: boolean
  from: Origin
  kind: Kind
  x: Column | null
  as: As
  y: Column[]
  color: Column | null
  use: Use
  sort: Sort
  /** How many values of x are shown; 0: all. */
  top: number
  title: string
  palette: Palette
  /** Of single series, by their names. */
  colors: Record<string, string>
}

export const mostSeries = 10
export const longestTitle = 200
const longestName = 500
const longestMark = 30_000
const mark = '# Chart settings for the page: '

/** What would end a line, or turn the text around it, written out. JSON.stringify writes out the control characters below the space and halves of pairs. */
const unseen = /[\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g
const escaped = (json: string) => json.replace(unseen, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** A text as a literal of Python, which has the escapes of JSON. */
export const literal = (text: string) => escaped(JSON.stringify(text))

/** A short number that tells one text from another. */
function sumOf(text: string): string {
  let h = 0x811c9dc5
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193) >>> 0
  return h.toString(36)
}

/** Code with the settings that made it before it. */
export const marked = (settings: Settings, body: string) =>
  `${mark}${escaped(JSON.stringify({ ...settings, sum: sumOf(body) }))}\n${body}`

export interface Marked {
  settings: Settings
  body: string
  /** The code was changed after the settings had made it. */
  changed: boolean
}

const one = <T extends string>(of: readonly T[], v: unknown, otherwise: T): T =>
  (of as readonly unknown[]).includes(v) ? (v as T) : otherwise
const text = (v: unknown, most: number): string => (typeof v === 'string' ? v.slice(0, most) : '')
const object = (v: unknown) => (v !== null && typeof v === 'object' ? (v as Record<string, unknown>) : {})

function columnOf(v: unknown): Column | null {
  const { at, name, named } = object(v)
  if (typeof at !== 'number' || !Number.isInteger(at) || at < -1 || at > 1e6 || typeof name !== 'string') return null
  return { at, name: name.slice(0, longestName), named: named === true && name.length <= longestName }
}

function originOf(v: unknown): Origin | null {
  const o = object(v)
  if (o.of === 'variable' && typeof o.name === 'string' && o.name.length <= 200)
    return {
      of: 'variable',
      name: o.name,
      form: one(['frame', 'series', 'array', 'polars', 'result'], o.form, 'frame'),
    }
  if (o.of !== 'file' || typeof o.path !== 'string' || !o.path || o.path.length > 4096) return null
  const more = (key: 'separator' | 'encoding' | 'sheet') => {
    const said = text(o[key], 200)
    return said ? { [key]: said } : {}
  }
  return {
    of: 'file',
    path: o.path,
    read: one(['csv', 'excel', 'parquet'], o.read, 'csv'),
    ...more('separator'),
    ...more('encoding'),
    ...more('sheet'),
  }
}

export const isColor = (v: unknown): v is string => typeof v === 'string' && /^#[0-9a-f]{6}$/i.test(v)

function settingsOf(v: unknown): Settings | null {
  const o = object(v)
  const from = originOf(o.from)
  const id = text(o.id, 40)
  if (!from || !/^[a-z0-9]{4,40}$/.test(id)) return null
  const after = text(o.after, 64)
  const colors = Object.entries(object(o.colors)).filter(([name, c]) => name.length <= longestName && isColor(c))
  const top = typeof o.top === 'number' && o.top >= 0 ? Math.min(1000, Math.floor(o.top)) : 0
  return {
    id,
    ...(after ? { after } : {}),
    ...(o.removed === true ? { removed: true } : {}),
    from,
    kind: one(kinds, o.kind, 'bar'),
    x: columnOf(o.x),
    as: one(['date', 'number', 'text'], o.as, 'text'),
    y: (Array.isArray(o.y) ? o.y : []).slice(0, mostSeries).flatMap((c) => columnOf(c) ?? []),
    color: columnOf(o.color),
    use: one(uses, o.use, 'none'),
    sort: one(sorts, o.sort, 'x'),
    top,
    title: text(o.title, longestTitle),
    palette: one(palettes, o.palette, 'page'),
    colors: Object.fromEntries(colors.slice(0, 50)) as Record<string, string>,
  }
}

/** The settings before code, or null where it has none that can be read. */
export function readMarked(code: string): Marked | null {
  if (!code.startsWith(mark)) return null
  const end = code.indexOf('\n')
  if (end < 0 || end > longestMark) return null
  try {
    const said: unknown = JSON.parse(code.slice(mark.length, end))
    const settings = settingsOf(said)
    const body = code.slice(end + 1)
    return settings && { settings, body, changed: object(said).sum !== sumOf(body) }
  } catch {
    return null
  }
}

/** Code that a person changed, as another version of the chart that it was: with the settings that it began with, which do not match any more. */
export function keepMark(before: string, code: string): string {
  const was = readMarked(before)
  if (!was) return code
  const now = readMarked(code)
  if (now?.settings.id === was.settings.id) return code
  return `${before.slice(0, before.indexOf('\n') + 1)}${code.startsWith(mark) ? code.slice(code.indexOf('\n') + 1) : code}`
}

export const newId = () => crypto.getRandomValues(new Uint32Array(2)).reduce((out, n) => out + n.toString(36), 'c')
