import { expect, it } from 'vitest'
import { decode, picture, svg } from './image'

const png = (w: number, h: number, ppm = 0) => {
  const b = new Uint8Array(64)
  b.set([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52])
  const v = new DataView(b.buffer)
  v.setUint32(16, w)
  v.setUint32(20, h)
  v.setUint32(33, 9)
  b.set([0x70, 0x48, 0x59, 0x73], 37)
  v.setUint32(41, ppm)
  b[49] = 1
  return b
}

it('reads sizes from the bytes', () => {
  expect(picture(png(640, 480))).toMatchObject({ type: 'image/png', width: 640, height: 480 })
  expect(picture(png(1280, 960, 7874))).toMatchObject({ width: 640, height: 480 })
  const gif = new Uint8Array([71, 73, 70, 56, 57, 97, 10, 0, 20, 0])
  expect(picture(gif)).toMatchObject({ type: 'image/gif', width: 10, height: 20 })
  const jpeg = new Uint8Array([255, 216, 255, 224, 0, 4, 0, 0, 255, 192, 0, 11, 8, 0, 30, 0, 40, 1, 0, 0, 0])
  expect(picture(jpeg)).toMatchObject({ type: 'image/jpeg', width: 40, height: 30 })
})

it('refuses what is too large or no picture', () => {
  expect(picture(png(100_000, 1000))).toMatchObject({ problem: 'large' })
  expect(picture(new Uint8Array([60, 115, 118]))).toMatchObject({ problem: 'broken' })
  expect(picture(new Uint8Array([255, 216, 255, 224, 0, 0]))).toMatchObject({ problem: 'broken' })
  expect(decode('***')).toMatchObject({ problem: 'broken' })
  expect(decode(5)).toMatchObject({ problem: 'broken' })
})

it('reads the size of an svg', () => {
  expect(svg('<svg width="72pt" height="36pt">')).toMatchObject({ width: 96, height: 48 })
  expect(svg('<?xml version="1.0"?><svg viewBox="0 0 10 20">')).toMatchObject({ width: 10, height: 20 })
  expect(svg('<svg>')).toMatchObject({ width: 0 })
  expect(svg('<p>')).toMatchObject({ problem: 'broken' })
})
