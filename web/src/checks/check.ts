import { client, data, type Schemas } from '../api/client'

export type Report = Schemas['Report']
export type Finding = Schemas['Finding']

/** What is looked at: a file of a workspace, or the last of programs that one interpreter runs one after the other. */
export type Checked = { session: string; path: string } | { code: string; before: readonly string[] }

export interface Asked {
  measure: boolean
  profile: boolean
}

// The server looks at 1 MiB of code at once, and takes no request above 4 MiB.
const mostBefore = 100
const mostCharacters = 300_000 // three bytes each at most

/** The programs before one that are sent along with it: the last, as many as the request has room for. */
export function recent(before: readonly string[], code: string): string[] {
  const last = before.slice(-mostBefore)
  let size = code.length
  const from = last.findLastIndex((one) => {
    size += one.length
    return size > mostCharacters
  })
  return last.slice(from + 1)
}

export async function checkCode(what: Checked, asked: Asked, signal: AbortSignal): Promise<Report> {
  const of = 'session' in what ? what : { code: what.code, before: recent(what.before, what.code) }
  const body = { kind: 'findings' as const, measure: asked.measure, profile: asked.profile, ...of }
  const { report } = await data(client.POST('/checks', { body, signal }))
  return report ?? { file: '', findings: [] }
}
