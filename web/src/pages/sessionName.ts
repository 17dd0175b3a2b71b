import type { Session } from '../api/client'
import { plainName } from '../parts/format'
import type { Words } from '../words'

const shown = 3

interface Named {
  /** Its name, or those of the conversations that use it. */
  main: string
  /** The files that it was asked about. */
  files: string
}

/** What people know a session by: its name, its conversations, their files. Its id says nothing to them. */
export function nameOf(s: Pick<Session, 'name' | 'conversations'>, w: Words): Named {
  const uses = s.conversations ?? []
  const titles = uses.slice(0, shown).map((c) => plainName(c.title).trim() || w.nav.untitled)
  const files = [...new Set(uses.flatMap((c) => c.files))].map(plainName)
  const some = files.slice(0, shown).join(', ')
  return {
    main: s.name || [...titles, ...(uses.length > shown ? ['…'] : [])].join(' · ') || w.find.session,
    files: files.length > shown ? w.sessions.filesMore(some, files.length - shown) : some,
  }
}
