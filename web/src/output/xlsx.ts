import type { Kind, Value } from './table'

// A table as a workbook with one sheet (ECMA-376, parts 1 and 2), for spreadsheets. Text is text in it, whatever it begins with: nothing becomes a formula.

const mostRows = 1_048_576 // of a sheet, as Excel has them
const mostColumns = 16_384
const mostText = 32_767 // characters of a cell

export const xlsxType = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'

/** The name of a column: A, Z, AA. */
export function columnName(n: number): string {
  let name = ''
  for (let left = n + 1; left > 0; left = Math.floor((left - 1) / 26))
    name = String.fromCharCode(65 + ((left - 1) % 26)) + name
  return name
}

const replacements: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }

/** What XML 1.0 cannot hold, and halves of pairs. */
const illegal =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g

/** Text in XML. A spreadsheet reads _x0041_ as a letter, so that is written as itself. */
const escaped = (text: string) =>
  text
    .slice(0, mostText)
    .replace(/_(?=x[0-9A-Fa-f]{4}_)/g, '_x005F_')
    .replace(illegal, '\ufffd')
    .replace(/[&<>]/g, (c) => replacements[c] ?? c)

function cell(value: Value, kind: Kind | undefined, at: string): string {
  if (value === null || value === '') return ''
  // Digits beyond the fifteenth are lost in a spreadsheet's numbers: an id that has more stays text.
  if (
    kind === 'number' &&
    /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(value) &&
    value.replace(/^-?0*|\.|e.*$/gi, '').length <= 15
  )
    return `<c r="${at}"><v>${value}</v></c>`
  if (kind === 'bool' && /^(true|false)$/i.test(value))
    return `<c r="${at}" t="b"><v>${/^t/i.test(value) ? 1 : 0}</v></c>`
  return `<c r="${at}" t="inlineStr"><is><t xml:space="preserve">${escaped(value)}</t></is></c>`
}

const head = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
const main = 'http://schemas.openxmlformats.org/spreadsheetml/2006/main'
const office = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'
const packaged = 'http://schemas.openxmlformats.org/package/2006'

function* sheet(columns: readonly string[], rows: readonly (readonly Value[])[], kinds: readonly Kind[]) {
  yield `${head}<worksheet xmlns="${main}"><sheetViews><sheetView workbookViewId="0"><pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews><sheetData>`
  const names = columns.slice(0, mostColumns).map((_, c) => columnName(c))
  yield `<row r="1">${names.map((n, c) => cell(columns[c] ?? '', 'text', `${n}1`)).join('')}</row>`
  for (const [i, row] of rows.slice(0, mostRows - 1).entries())
    yield `<row r="${i + 2}">${names.map((n, c) => cell(row[c] ?? null, kinds[c], `${n}${i + 2}`)).join('')}</row>`
  yield '</sheetData></worksheet>'
}

const crcTable = Uint32Array.from({ length: 256 }, (_, n) => {
  let c = n
  for (let k = 0; k < 8; k++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1
  return c >>> 0
})

export function crc32(bytes: Uint8Array): number {
  let c = 0xffffffff
  for (const b of bytes) c = (crcTable[(c ^ b) & 255] ?? 0) ^ (c >>> 8)
  return (c ^ 0xffffffff) >>> 0
}

async function deflated(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream('deflate-raw'))
  return new Uint8Array(await new Response(stream).arrayBuffer())
}

/** A ZIP archive of some files (APPNOTE 6.3.3), each compressed. */
async function zip(files: readonly (readonly [string, Uint8Array<ArrayBuffer>])[]): Promise<Blob> {
  const parts: Uint8Array<ArrayBuffer>[] = []
  const directory: Uint8Array<ArrayBuffer>[] = []
  let at = 0
  const add = (list: Uint8Array<ArrayBuffer>[], ...what: Uint8Array<ArrayBuffer>[]) => {
    list.push(...what)
    return what.reduce((n, b) => n + b.length, 0)
  }
  /** Little-endian numbers: [bytes, value] each. */
  const numbers = (...fields: [2 | 4, number][]) => {
    const out = new DataView(new ArrayBuffer(fields.reduce((n, [size]) => n + size, 0)))
    let to = 0
    for (const [size, value] of fields) {
      if (size === 2) out.setUint16(to, value, true)
      else out.setUint32(to, value, true)
      to += size
    }
    return new Uint8Array(out.buffer)
  }
  let size = 0
  for (const [path, bytes] of files) {
    const name = new TextEncoder().encode(path)
    const packed = await deflated(bytes)
    const about: [2 | 4, number][] = [
      [2, 20],
      [2, 0x800],
      [2, 8],
      [2, 0],
      [2, 0x21],
      [4, crc32(bytes)],
      [4, packed.length],
      [4, bytes.length],
      [2, name.length],
      [2, 0],
    ]
    const here = at
    at += add(parts, numbers([4, 0x04034b50], ...about), name, packed)
    size += add(directory, numbers([4, 0x02014b50], [2, 20], ...about, [2, 0], [2, 0], [2, 0], [4, 0], [4, here]), name)
  }
  const end = numbers([4, 0x06054b50], [2, 0], [2, 0], [2, files.length], [2, files.length], [4, size], [4, at], [2, 0])
  return new Blob([...parts, ...directory, end], { type: xlsxType })
}

/** A workbook of a table. kinds are those of its columns: numbers become numbers, truth values truth values, all else text. */
export async function xlsx(
  columns: readonly string[],
  rows: readonly (readonly Value[])[],
  kinds: readonly Kind[],
): Promise<Blob> {
  const text = async (chunks: Iterable<string>) => new Uint8Array(await new Blob([...chunks]).arrayBuffer())
  return zip([
    [
      '[Content_Types].xml',
      await text([
        `${head}<Types xmlns="${packaged}/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/xl/workbook.xml" ContentType="${xlsxType}.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/></Types>`,
      ]),
    ],
    [
      '_rels/.rels',
      await text([
        `${head}<Relationships xmlns="${packaged}/relationships"><Relationship Id="r1" Type="${office}/officeDocument" Target="xl/workbook.xml"/></Relationships>`,
      ]),
    ],
    [
      'xl/workbook.xml',
      await text([
        `${head}<workbook xmlns="${main}" xmlns:r="${office}"><sheets><sheet name="table" sheetId="1" r:id="r1"/></sheets></workbook>`,
      ]),
    ],
    [
      'xl/_rels/workbook.xml.rels',
      await text([
        `${head}<Relationships xmlns="${packaged}/relationships"><Relationship Id="r1" Type="${office}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>`,
      ]),
    ],
    ['xl/worksheets/sheet1.xml', await text(sheet(columns, rows, kinds))],
  ])
}
