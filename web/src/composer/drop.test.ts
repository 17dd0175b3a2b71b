import { describe, expect, it } from 'vitest'
import { free } from './attachments'
import { filesIn, mostFiles, pastedFiles } from './drop'

const file = (name: string) =>
  ({
    name,
    isFile: true,
    isDirectory: false,
    file: (done: (f: File) => void) => done(new File(['x'], name)),
  }) as never as FileSystemEntry

const folder = (name: string, content: FileSystemEntry[]) =>
  ({
    name,
    isFile: false,
    isDirectory: true,
    createReader: () => {
      const parts = [content.slice(0, 100), content.slice(100), []]
      return { readEntries: (done: (e: FileSystemEntry[]) => void) => done(parts.shift() ?? []) }
    },
  }) as never as FileSystemEntry

describe('a folder that is dropped', () => {
  it('gives the files in it, without hidden ones', async () => {
    const tree = folder('data', [file('a.csv'), folder('more', [file('b.csv')]), folder('.git', [file('HEAD')])])
    const { files, cut } = await filesIn([tree, file('c.csv')])
    expect(files.map((f) => f.name).sort()).toEqual(['a.csv', 'b.csv', 'c.csv'])
    expect(cut).toBe(false)
  })
  it('is bounded', async () => {
    const many = Array.from({ length: 150 }, (_, i) => file(`${i}.csv`))
    const { files, cut } = await filesIn([folder('many', many)])
    expect(files).toHaveLength(mostFiles)
    expect(cut).toBe(true)
  })
})

describe('names', () => {
  it('are not taken twice', () => {
    expect(free('a.csv', [])).toBe('a.csv')
    expect(free('a.csv', ['a.csv', 'a-2.csv'])).toBe('a-3.csv')
    expect(free('.env', ['.env'])).toBe('.env-2')
  })
  it('are made for pictures of the clipboard', () => {
    const files = [new File([''], 'image.png', { type: 'image/png' }), new File([''], 'x.png', { type: 'image/png' })]
    expect(pastedFiles(files, 'pasted').map((f) => f.name)).toEqual(['pasted.png', 'x.png'])
  })
})
