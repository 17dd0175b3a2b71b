// Pictures from outside: what they are is read from their bytes, never from what they are said to be.

export interface Picture {
  type: 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp' | 'image/svg+xml'
  bytes: Uint8Array<ArrayBuffer>
  width: number // in CSS pixels; 0 when unknown
  height: number
}

export const pixels = 50_000_000
const encoded = 96_000_000 // characters of base64

export type Problem = { problem: 'large' | 'broken'; detail: string }

export function decode(base64: unknown): Uint8Array<ArrayBuffer> | Problem {
  if (typeof base64 !== 'string' || base64.length === 0) return { problem: 'broken', detail: '' }
  if (base64.length > encoded) return { problem: 'large', detail: `${Math.round(base64.length / 1.4e6)} MB` }
  try {
    const binary = atob(base64)
    const bytes = new Uint8Array(binary.length)
    for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i)
    return bytes
  } catch {
    return { problem: 'broken', detail: '' }
  }
}

export function picture(bytes: Uint8Array<ArrayBuffer>): Picture | Problem {
  const found = png(bytes) ?? gif(bytes) ?? webp(bytes) ?? jpeg(bytes)
  if (!found || found.width < 1 || found.height < 1) return { problem: 'broken', detail: '' }
  const { type, width, height, density } = found
  if (width * height > pixels) return { problem: 'large', detail: `${width} × ${height}` }
  return { type, bytes, width: Math.round(width / density), height: Math.round(height / density) }
}

interface Header {
  type: Picture['type']
  width: number
  height: number
  density: number
}

function png(b: Uint8Array): Header | null {
  if (!starts(b, [0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10]) || b.length < 33) return null
  const v = view(b)
  const header: Header = { type: 'image/png', width: v.getUint32(16), height: v.getUint32(20), density: 1 }
  // pHYs comes before the pixels. Figures are drawn at 100 points to the inch, or twice that for sharp screens.
  for (let at = 8, n = 0; at + 12 <= b.length && n < 64; n++) {
    const length = v.getUint32(at)
    const name = ascii(b, at + 4, 4)
    if (name === 'IDAT') break
    if (name === 'pHYs' && length === 9 && at + 17 <= b.length && b[at + 16] === 1) {
      const inch = v.getUint32(at + 8) * 0.0254
      header.density = inch >= 280 ? 3 : inch >= 140 ? 2 : 1
    }
    at += 12 + length
  }
  return header
}

function gif(b: Uint8Array): Header | null {
  if (b.length < 10 || !/^GIF8[79]a$/.test(ascii(b, 0, 6))) return null
  const v = view(b)
  return { type: 'image/gif', width: v.getUint16(6, true), height: v.getUint16(8, true), density: 1 }
}

function webp(b: Uint8Array): Header | null {
  if (b.length < 30 || ascii(b, 0, 4) !== 'RIFF' || ascii(b, 8, 4) !== 'WEBP') return null
  const v = view(b)
  const of = (width: number, height: number): Header => ({ type: 'image/webp', width, height, density: 1 })
  const kind = ascii(b, 12, 4)
  if (kind === 'VP8X') return of(1 + (v.getUint32(24, true) & 0xffffff), 1 + (v.getUint32(26, true) >>> 8))
  if (kind === 'VP8L') {
    const bits = v.getUint32(21, true)
    return of(1 + (bits & 0x3fff), 1 + ((bits >>> 14) & 0x3fff))
  }
  if (kind === 'VP8 ') return of(v.getUint16(26, true) & 0x3fff, v.getUint16(28, true) & 0x3fff)
  return null
}

function jpeg(b: Uint8Array): Header | null {
  if (!starts(b, [0xff, 0xd8, 0xff])) return null
  const v = view(b)
  let at = 2
  while (at + 9 < b.length) {
    if (b[at] !== 0xff) return null
    const marker = b[at + 1] ?? 0
    if (marker === 0xff) at++
    else if (marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc)
      return { type: 'image/jpeg', width: v.getUint16(at + 7), height: v.getUint16(at + 5), density: 1 }
    else at += 2 + Math.max(2, v.getUint16(at + 2))
  }
  return null
}

/** SVG is only ever shown by <img>, where it runs no script and loads nothing. */
export function svg(text: unknown): Picture | Problem {
  if (typeof text !== 'string' || !/<svg[\s>]/i.test(text.slice(0, 4000))) return { problem: 'broken', detail: '' }
  if (text.length > 20_000_000) return { problem: 'large', detail: `${Math.round(text.length / 1e6)} MB` }
  const tag = /<svg\b[^>]{0,4000}>/i.exec(text.slice(0, 8000))?.[0] ?? ''
  const length = (name: string) => {
    const m = new RegExp(`\\s${name}\\s*=\\s*["']\\s*([\\d.]+)(pt|px|in|cm|mm)?\\s*["']`, 'i').exec(tag)
    const unit = { pt: 96 / 72, px: 1, in: 96, cm: 96 / 2.54, mm: 96 / 25.4 }[m?.[2]?.toLowerCase() ?? 'px'] ?? 1
    return m ? Number(m[1]) * unit : 0
  }
  let [width, height] = [length('width'), length('height')]
  const box = /\sviewBox\s*=\s*["']\s*[-\d.e]+[\s,]+[-\d.e]+[\s,]+([\d.e]+)[\s,]+([\d.e]+)/i.exec(tag)
  if (box && !(width && height)) [width, height] = [Number(box[1]), Number(box[2])]
  const good = Number.isFinite(width * height) && width > 0 && height > 0 && width * height <= pixels
  return {
    type: 'image/svg+xml',
    bytes: new TextEncoder().encode(text),
    width: good ? Math.round(width) : 0,
    height: good ? Math.round(height) : 0,
  }
}

const starts = (b: Uint8Array, with_: number[]) => with_.every((v, i) => b[i] === v)
const view = (b: Uint8Array) => new DataView(b.buffer, b.byteOffset, b.byteLength)
const ascii = (b: Uint8Array, at: number, n: number) => String.fromCharCode(...b.subarray(at, at + n))
