import { client, data } from '../api/client'
import { refresh, useSession } from '../api/queries'
import { complain } from '../parts'
import { moment } from '../parts/format'
import { useWords } from '../words'
import css from './conversation.module.css'

/** Says what the session lost, until the person has seen it. */
export function Rollback({ session }: { session: string }) {
  const w = useWords()
  const { data: s } = useSession(session)
  // What was undone by hand was said then.
  if (!s?.rollback || /undo|undone|point/i.test(s.rollback.reason)) return null
  return (
    <p className={css.link} role="status">
      {w.turn.rollback} {s.rollback.to && w.turn.rollbackTo(moment(s.rollback.to, w.lang))}
      <button
        type="button"
        onClick={async () => {
          try {
            await data(client.POST('/sessions/{session}/acknowledge', { params: { path: { session } } }))
            refresh({ session })
          } catch (error) {
            complain(error)
          }
        }}
      >
        {w.turn.understood}
      </button>
    </p>
  )
}
