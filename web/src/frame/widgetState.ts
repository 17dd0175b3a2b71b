// The states of widgets as the page and the frame tell them each other. All of it comes from code in a sandbox.

export interface Buffer {
  path: (string | number)[]
  data: string
}

export interface Model {
  model_name: string
  model_module: string
  model_module_version: string
  state: Record<string, unknown>
  buffers: Buffer[]
  too_large?: true
}

export type Models = Record<string, Model>
export type Closed = readonly string[]

/** What is drawn first. */
export interface Shown {
  view: string
  models: Models
  /** Nothing can be moved. */
  fixed: boolean
  texts: { strange: string; large: string; gone: string; upload: string; password: string }
}

/** Shows one output of an Output widget; view shows a widget in a box. */
export type Show = (
  box: HTMLElement,
  item: Record<string, unknown>,
  view?: (box: HTMLElement, id: string) => Promise<void>,
) => Promise<void>

export const most = { models: 2000, id: 128, name: 200 }

const isRecord = (v: unknown): v is Record<string, unknown> => v !== null && typeof v === 'object' && !Array.isArray(v)
const text = (v: unknown) => (typeof v === 'string' ? v.slice(0, most.name) : '')
const isKey = (v: unknown) => typeof v === 'string' || (typeof v === 'number' && Number.isInteger(v))
const unsafe = new Set(['__proto__', 'constructor', 'prototype'])

function buffersOf(value: unknown): Buffer[] {
  if (!Array.isArray(value)) return []
  return value.slice(0, 100).flatMap((b) => {
    if (!isRecord(b) || typeof b.data !== 'string' || !Array.isArray(b.path) || b.path.length > 20) return []
    const safe = b.path.every((k) => isKey(k) && !unsafe.has(String(k)))
    if (!safe || !/^[A-Za-z0-9+/]*={0,2}$/.test(b.data) || b.data.length % 4) return []
    return [{ path: b.path as (string | number)[], data: b.data }]
  })
}

/** The states that have the form of one. */
export function models(value: unknown): Models {
  const out: Models = Object.create(null)
  if (!isRecord(value)) return out
  for (const [id, m] of Object.entries(value).slice(0, most.models)) {
    if (id.length > most.id || !isRecord(m) || !isRecord(m.state)) continue
    out[id] = {
      model_name: text(m.model_name),
      model_module: text(m.model_module),
      model_module_version: text(m.model_module_version),
      state: m.state,
      buffers: buffersOf(m.buffers),
      ...(typeof m.too_large === 'number' ? { too_large: true as const } : {}),
    }
  }
  return out
}

export const closed = (value: unknown): string[] =>
  Array.isArray(value)
    ? value.filter((id): id is string => typeof id === 'string' && id.length <= most.id).slice(0, most.models)
    : []

/** The states of a widget and of all that these refer to, and of links, which nothing refers to. */
export function needed(all: Models, view: string): Models {
  const out: Models = Object.create(null)
  const line = [view, ...Object.keys(all).filter((id) => /Link(Model)?$/.test(all[id]?.model_name ?? ''))]
  while (line.length) {
    const id = line.pop() as string
    const model = all[id]
    if (!model || out[id]) continue
    out[id] = model
    const values: unknown[] = Object.values(model.state)
    for (let n = 0; values.length && n < 100_000; n++) {
      const v = values.pop()
      if (typeof v === 'string') {
        if (v.startsWith('IPY_MODEL_')) line.push(v.slice(10))
      } else if (Array.isArray(v)) values.push(...v.slice(0, 5000))
      else if (isRecord(v)) {
        if (typeof v.model_id === 'string') line.push(v.model_id)
        values.push(...Object.values(v).slice(0, 5000))
      }
    }
  }
  return out
}
