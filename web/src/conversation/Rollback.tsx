import { client, data, type Schemas, type Turn } from '../api/client'
import { refresh } from '../api/queries'
import { complain } from '../parts'
import { moment } from '../parts/format'
import { useWords, type Words } from '../words'
import css from './conversation.module.css'

type Lost = Schemas['Rollback']

/** The turn that says what a session lost: the last one before that was found out, when it was lost with it. */
export function tellerOf(branch: readonly Turn[], session: string | undefined, rollback: Lost | undefined): string {
  if (!rollback) return ''
  const at = Date.parse(rollback.at)
  const last = branch.findLast((t) => t.session === session && Date.parse(t.created_at) <= at)
  return last?.state === 'lost' ? last.id : ''
}

export const savedAs = (rollback: Lost, w: Words) =>
  rollback.to ? w.turn.lostState(moment(rollback.to, w.lang)) : w.turn.lostAll

export const acknowledge = (session: string) =>
  data(client.POST('/sessions/{session}/acknowledge', { params: { path: { session } } }))

/** Says what the session lost, until the person has seen it. */
export function Rollback({ session, rollback }: { session: string; rollback: Lost | undefined }) {
  const w = useWords()
  // What was undone by hand was said then.
  if (!rollback || /undo|undone|point/i.test(rollback.reason)) return null
  return (
    <p className={css.link} role="status">
      {w.turn.rollback} {rollback.to && w.turn.rollbackTo(moment(rollback.to, w.lang))}
      <button
        type="button"
        onClick={async () => {
          try {
            await acknowledge(session)
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
