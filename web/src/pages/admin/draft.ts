import type { Schemas } from '../../api/client'

type Connection = Schemas['Connection']
export type Provider = Connection['provider']

export const providers: Provider[] = ['openai', 'anthropic', 'ollama']

/** A connection while it is written. */
export interface Draft {
  /** Tells one form from the next. */
  key: string
  provider: Provider
  address: string
  /** Empty: the key that is there stays. */
  secret: string
  /** The end of the key that is there. */
  has: string
  /** The first is asked when none is named. */
  models: string[]
}

export const newDraft = (provider: Provider = 'openai'): Draft => ({
  key: provider,
  provider,
  address: '',
  secret: '',
  has: '',
  models: [''],
})

export function draftOf(c: Connection): Draft {
  const usual = c.default && c.models.includes(c.default) ? c.default : c.models[0]
  return {
    ...newDraft(c.provider),
    key: `${c.provider} ${c.address} ${c.models.join(' ')}`,
    address: c.address,
    has: c.key_end ?? '',
    models: usual ? [usual, ...c.models.filter((m) => m !== usual)] : [''],
  }
}

/** What the server is told. */
export function said(d: Draft): Schemas['ConnectionChange'] {
  const models = [...new Set(d.models.map((m) => m.trim()).filter(Boolean))]
  const address = d.address.trim()
  return {
    ...(address ? { address } : {}),
    ...(d.secret.trim() ? { key: d.secret.trim() } : {}),
    ...(models.length ? { models, default: models[0] as string } : {}),
  }
}
