import { expect, test } from 'vitest'
import { arranged, type Shown } from './Album'

/** A figure in a box that knows its place in the page. */
function shown(place: number): Shown {
  const box = {
    place,
    compareDocumentPosition: (other: { place: number }) => (other.place > place ? 4 : 2),
  }
  return { what: { picture: {} }, alt: '', number: place, box: { current: box } } as unknown as Shown
}

globalThis.Node ??= { DOCUMENT_POSITION_FOLLOWING: 4 } as unknown as typeof Node

test('what comes while the full screen is open is reached, and what is looked at stays', () => {
  const [one, two, three] = [shown(1), shown(2), shown(3)]
  const after = arranged({ list: [one, two], at: 1 }, new Set([one, two, three]), three)
  expect(after).toEqual({ list: [one, two, three], at: 1 })
  expect(arranged({ list: [two, three], at: 1 }, new Set([one, two, three]), one)).toEqual({
    list: [one, two, three],
    at: 2,
  })
})

test('a figure that changes has its place', () => {
  const [one, two] = [shown(1), shown(2)]
  const dark = { ...two, alt: 'dark' }
  expect(arranged({ list: [one, two], at: 1 }, new Set([one, dark]), dark)).toEqual({ list: [one, dark], at: 1 })
})
