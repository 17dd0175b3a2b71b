// @vitest-environment node
import { expect, it } from 'vitest'
import { columnName, crc32, xlsx } from './xlsx'

/** The files of an archive, by its directory, with their checksums looked at. */
async function unzip(blob: Blob): Promise<Record<string, string>> {
  const bytes = new Uint8Array(await blob.arrayBuffer())
  const view = new DataView(bytes.buffer)
  const text = (from: number, length: number) => new TextDecoder().decode(bytes.subarray(from, from + length))
  const end = bytes.length - 22
  expect(view.getUint32(end, true)).toBe(0x06054b50)
  const out: Record<string, string> = {}
  let at = view.getUint32(end + 16, true)
  for (let n = view.getUint16(end + 10, true); n > 0; n--) {
    const name = text(at + 46, view.getUint16(at + 28, true))
    const here = view.getUint32(at + 42, true)
    const from = here + 30 + view.getUint16(here + 26, true) + view.getUint16(here + 28, true)
    const packed = new Blob([bytes.subarray(from, from + view.getUint32(at + 20, true))])
    const whole = new Uint8Array(
      await new Response(packed.stream().pipeThrough(new DecompressionStream('deflate-raw'))).arrayBuffer(),
    )
    expect([crc32(whole), whole.length]).toEqual([view.getUint32(at + 16, true), view.getUint32(at + 24, true)])
    out[name] = new TextDecoder().decode(whole)
    at += 46 + view.getUint16(at + 28, true)
  }
  return out
}

it('names columns as spreadsheets do', () => {
  expect([0, 25, 26, 701, 702, 16_383].map(columnName)).toEqual(['A', 'Z', 'AA', 'ZZ', 'AAA', 'XFD'])
})

it('writes numbers as numbers and everything else as text', async () => {
  const rows = [
    ['1.5', '=1+1', 'True', '2024-01-01'],
    ['12345678901234567890', '<a> & \u0001_x0041_ \ud800', 'no', null],
  ]
  const files = await unzip(await xlsx(['n', '地区', 'b', 'day'], rows, ['number', 'text', 'bool', 'date']))
  expect(Object.keys(files)).toHaveLength(5)
  const sheet = files['xl/worksheets/sheet1.xml'] ?? ''
  for (const want of [
    '<c r="B1" t="inlineStr"><is><t xml:space="preserve">地区</t></is></c>',
    '<c r="A2"><v>1.5</v></c><c r="B2" t="inlineStr"><is><t xml:space="preserve">=1+1</t></is></c><c r="C2" t="b"><v>1</v></c>',
    '<c r="A3" t="inlineStr"><is><t xml:space="preserve">12345678901234567890</t></is></c>',
    '&lt;a&gt; &amp; \ufffd_x005F_x0041_ \ufffd',
  ])
    expect(sheet).toContain(want)
  expect(sheet).not.toContain('<f>')
  expect(sheet).not.toContain('r="D3"')
})
