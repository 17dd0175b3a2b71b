import { X } from 'lucide-react'
import { useState } from 'react'
import { IconButton, Segments } from '../parts'
import { prefer } from '../shell/preferences'
import { useWords } from '../words'
import { Files } from './Files'
import { Packages } from './Packages'
import css from './panels.module.css'
import { SessionPanel } from './SessionPanel'
import { Variables } from './Variables'

type Tab = 'files' | 'variables' | 'packages' | 'session'

export function Panels({ session }: { session: string | undefined }) {
  const w = useWords()
  const [tab, setTab] = useState<Tab>('files')
  return (
    <>
      <div className={css.tabs}>
        <Segments
          label={w.nav.panels}
          value={tab}
          onChange={setTab}
          options={[
            { id: 'files', name: w.panels.files },
            { id: 'variables', name: w.variables.title },
            { id: 'packages', name: w.panels.packages },
            { id: 'session', name: w.panels.session },
          ]}
        />
        <IconButton label={w.close} onClick={() => prefer({ panels: false })}>
          <X size={16} aria-hidden />
        </IconButton>
      </div>
      <div className={css.body}>
        {!session && <p className={css.quiet}>{w.panels.noSession}</p>}
        {session && tab === 'files' && <Files session={session} />}
        {session && tab === 'variables' && <Variables session={session} />}
        {session && tab === 'packages' && <Packages session={session} />}
        {session && tab === 'session' && <SessionPanel session={session} />}
      </div>
    </>
  )
}
