import { useSyncExternalStore } from 'react'
import { client, data } from '../api/client'
import { asProblem } from '../api/problem'
import { queries } from '../api/queries'
import { storeFile, type Upload } from '../api/upload'
import { explain } from '../words/problems'
import { type Column, columnsOf } from './suggest'
import { firstRows, RowCounter } from './table'

export interface Attachment {
  key: string
  name: string
  size: number
  part: number
  id: string
  error: string
  /** The first rows of a table. */
  head: string[][]
  table?: TableHead
  /** Of an image, the address at which the page itself has it. */
  picture?: string
}

const none: Attachment[] = []
const place = 'cove.attached'
const all = new Map<string, Attachment[]>(stored())
const uploads = new Map<string, Upload<unknown>>()
// What may have to be sent again.
const sources = new Map<string, File>()
const readers = new Set<() => void>()
let counter = 0
// Few at a time: a browser has six connections to a server, and each file has all of the line sooner.
const atOnce = 3
const waiting: (() => void)[] = []
let sending = 0

function set(scope: string, list: Attachment[]) {
  if (list.length) all.set(scope, list)
  else all.delete(scope)
  keep()
  for (const call of readers) call()
}

/** What is in the store already is there after a reload, too. */
function keep() {
  const kept = [...all]
    .map(([scope, list]) => [scope, list.filter((a) => a.id).map(({ picture: _, ...a }) => a)] as const)
    .filter(([, list]) => list.length)
  try {
    sessionStorage.setItem(place, JSON.stringify(kept))
  } catch {
    // Storage is full or forbidden: it is known until the page is left.
  }
}

function stored(): [string, Attachment[]][] {
  try {
    const said = JSON.parse(sessionStorage.getItem(place) ?? '[]') as [string, Attachment[]][]
    return said.map(([scope, list]) => [scope, list.map((a) => ({ ...a, key: `k${a.key}` }))])
  } catch {
    return []
  }
}

export const attachmentsOf = (scope: string) => all.get(scope) ?? none

const change = (scope: string, key: string, part: Partial<Attachment>) =>
  set(
    scope,
    attachmentsOf(scope).map((a) => (a.key === key ? { ...a, ...part } : a)),
  )

const read = (part: Blob) =>
  new Promise<ArrayBuffer>((done) => {
    const reader = new FileReader()
    reader.onloadend = () => done(reader.result instanceof ArrayBuffer ? reader.result : new ArrayBuffer(0))
    reader.readAsArrayBuffer(part)
  })

/** Text of a file's beginning, to the last end of a line. Tables of older Chinese programs are not UTF-8. */
function decode(bytes: ArrayBuffer, whole: boolean): string {
  const all = new Uint8Array(bytes)
  const part = whole ? all : all.subarray(0, all.lastIndexOf(10) + 1 || all.length)
  // In a single long line the last character may be cut in two: a stream would wait for the rest of it.
  const how = { stream: !whole }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(part, how)
  } catch {
    return new TextDecoder('gb18030').decode(part, how)
  }
}

const headBytes = 16_384
const mostCounted = 32_000_000
const shownColumns = 6
const shownRows = 4
const lookedAt = 200

/** What can be seen of a table that is text before it is on the server. */
export interface TableHead {
  /** The first rows, the names of the columns first. */
  head: string[][]
  /** The columns that `head` has no room for. */
  moreColumns: number
  /** Rows of the whole, without the names; 0 where they were not counted. */
  rows: number
  columns: Column[]
}

const noTable: TableHead = { head: [], moreColumns: 0, rows: 0, columns: [] }

async function countRows(file: File, sign: string): Promise<number> {
  if (file.size > mostCounted) return 0
  const counter = new RowCounter(sign)
  for (let at = 0; at < file.size; at += 1 << 20)
    counter.add(new Uint8Array(await read(file.slice(at, at + (1 << 20)))))
  return Math.max(0, counter.rows - 1)
}

/** The first rows of a table that is text, cell by cell, and how much more there is. */
export async function headOf(file: File): Promise<TableHead> {
  if (!/\.(csv|tsv|txt)$/i.test(file.name)) return noTable
  const text = decode(await read(file.slice(0, headBytes)), file.size <= headBytes).replace(/^\ufeff/, '')
  const line = text.split(/\r?\n/).find(Boolean)
  const sign = ['\t', ';', ','].find((s) => line?.includes(s))
  if (!sign) return noTable
  const all = firstRows(text, sign, lookedAt)
  const [names = [], ...rows] = all
  const short = (cell: string) => cell.replace(/\s+/g, ' ').trim().slice(0, 24)
  return {
    head: all.slice(0, shownRows).map((r) => r.slice(0, shownColumns).map(short)),
    moreColumns: Math.max(0, names.length - shownColumns),
    rows: await countRows(file, sign),
    columns: columnsOf(names, rows),
  }
}

const done = (key: string) => {
  uploads.delete(key)
  sending--
  waiting.shift()?.()
}

/** The largest file that the server takes, as far as is known. */
const largest = async () =>
  queries
    .fetchQuery({
      queryKey: ['settings'],
      staleTime: 300_000,
      retry: false,
      queryFn: () => data(client.GET('/settings')),
    })
    .then((s) => s.upload_bytes)
    .catch(() => Number.POSITIVE_INFINITY)

async function transfer(scope: string, key: string, tooLarge: (most: number) => string) {
  const file = sources.get(key)
  const here = () => attachmentsOf(scope).find((a) => a.key === key)
  if (!file || !here()) return
  const most = await largest()
  if (file.size > most) {
    change(scope, key, { error: tooLarge(most) })
    return
  }
  if (sending >= atOnce) await new Promise<void>((go) => waiting.push(go))
  sending++
  const name = here()?.name
  if (name === undefined) {
    done(key)
    return
  }
  const upload = storeFile(file, name, (part) => change(scope, key, { part }))
  uploads.set(key, upload)
  await upload.done
    .then((stored) => {
      sources.delete(key)
      change(scope, key, { id: stored.id, part: 1 })
    })
    .catch((error) => change(scope, key, { error: explain(asProblem(error)).what }))
    .finally(() => done(key))
}

const shownImage = /^image\/(png|jpeg|gif|webp)$/

/** Adds files to the question that is being written, and begins to send them. */
export function attach(scope: string, files: Iterable<File>, tooLarge: (most: number) => string = String) {
  for (const file of files) {
    const key = `a${++counter}`
    sources.set(key, file)
    const known = attachmentsOf(scope)
    const name = free(
      file.name || 'file',
      known.map((a) => a.name),
    )
    const picture = shownImage.test(file.type) ? { picture: URL.createObjectURL(file) } : {}
    set(scope, [...known, { key, name, size: file.size, part: 0, id: '', error: '', head: [], ...picture }])
    void headOf(file).then((table) => change(scope, key, { head: table.head, table }))
    void transfer(scope, key, tooLarge)
  }
}

/** A name that no other file of the question has. */
export function free(name: string, taken: readonly string[]): string {
  const dot = name.lastIndexOf('.')
  const [stem, end] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, '']
  for (let n = 1; ; n++) {
    const next = n === 1 ? name : `${stem}-${n}${end}`
    if (!taken.includes(next)) return next
  }
}

/** Sends a file that failed once more. */
export function resend(scope: string, key: string, tooLarge: (most: number) => string = String) {
  change(scope, key, { error: '', part: 0 })
  void transfer(scope, key, tooLarge)
}

export const canResend = (key: string) => sources.has(key)

const forget = (list: readonly Attachment[]) => {
  for (const a of list) {
    sources.delete(a.key)
    if (a.picture) URL.revokeObjectURL(a.picture)
  }
}

export function detach(scope: string, key: string) {
  uploads.get(key)?.abort()
  forget(attachmentsOf(scope).filter((a) => a.key === key))
  set(
    scope,
    attachmentsOf(scope).filter((a) => a.key !== key),
  )
}

export function clear(scope: string) {
  forget(attachmentsOf(scope))
  set(scope, [])
}

/** Stored files, as attachments. */
export const attached = (files: readonly Pick<Attachment, 'id' | 'name' | 'size'>[] = []): Attachment[] =>
  files.map((f) => ({ ...f, key: f.id, part: 1, error: '', head: [] }))

export const restore = (scope: string, list: Attachment[]) =>
  set(scope, [...attachmentsOf(scope), ...list.map(({ picture: _, ...a }) => a)])

export const useAttachments = (scope: string) =>
  useSyncExternalStore(
    (call) => {
      readers.add(call)
      return () => {
        readers.delete(call)
      }
    },
    () => attachmentsOf(scope),
  )
