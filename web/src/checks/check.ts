import { client, data, type Schemas } from '../api/client'

export type Report = Schemas['Report']
export type Finding = Schemas['Finding']

/** What is looked at: a file of a workspace, or the last of programs that one interpreter runs one after the other. */
export type Checked = { session: string; path: string } | { code: string; before: readonly string[] }

export interface Asked {
  measure: boolean
  profile: boolean
}

// The server looks at what it takes at once; a request has 4 MiB.
const mostBefore = 100

export async function checkCode(what: Checked, asked: Asked, signal: AbortSignal): Promise<Report> {
  const of = 'session' in what ? what : { code: what.code, before: what.before.slice(-mostBefore) }
  const body = { kind: 'findings' as const, measure: asked.measure, profile: asked.profile, ...of }
  const { report } = await data(client.POST('/checks', { body, signal }))
  return report ?? { file: '', findings: [] }
}
