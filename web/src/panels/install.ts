import { post } from '../api/client'
import { refresh } from '../api/queries'
import type { InstallEvent } from '../output/types'

/** Installs packages in a session, as a person asks for them by name. What was not installed is in the answer. */
export async function installPackages(session: string, requirements: string[]): Promise<InstallEvent> {
  const said = await post<InstallEvent>(`sessions/${session}/packages?wait=true`, { requirements })
  refresh({ session })
  return said
}

export const installIn = (session: string) => (name: string) => installPackages(session, [name])
