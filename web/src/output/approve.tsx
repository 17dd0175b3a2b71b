import { createContext, useContext, useState } from 'react'
import { explain } from '../words/problems'
import css from './notes.module.css'
import type { InstallEvent } from './types'
import { words } from './words'

/** Installs a package that a person names, and so approves; null where there is no session to install it in. */
export const InstallContext = createContext<((name: string) => Promise<InstallEvent>) | null>(null)

/** Why something was not installed although a person asked for it; nothing when it was. */
export const refusalOf = (event: InstallEvent): string =>
  [...(event.refused ?? []).flatMap((r) => [r.reason, r.hint]), event.failure?.message, event.failure?.hint]
    .filter(Boolean)
    .join('. ')

/** Lets a person approve a package that is not installed without approval. */
export function ApproveInstall({ name }: { name: string }) {
  const w = words()
  const install = useContext(InstallContext)
  const [state, setState] = useState<'asks' | 'works' | 'done'>('asks')
  const [failed, setFailed] = useState('')
  if (!install) return null
  if (state === 'done') return <span role="status">{w.installedNow}</span>
  const go = async () => {
    setState('works')
    setFailed('')
    try {
      const why = refusalOf(await install(name))
      setFailed(why)
      setState(why ? 'asks' : 'done')
    } catch (error) {
      setFailed(error instanceof Error ? explain(error).what : w.installFailed)
      setState('asks')
    }
  }
  return (
    <>
      <button type="button" className={css.approve} disabled={state === 'works'} onClick={() => void go()}>
        {state === 'works' ? w.preparing : w.installAnyway}
      </button>
      {failed && <span role="alert">{failed}</span>}
    </>
  )
}
