import { Pencil, RotateCw, X } from 'lucide-react'
import { useState } from 'react'
import { client, data, type Queued } from '../api/client'
import { asProblem } from '../api/problem'
import { queries } from '../api/queries'
import { complain, IconButton } from '../parts'
import { useWords } from '../words'
import { type Explained, explain } from '../words/problems'
import css from './conversation.module.css'

const place = (q: Queued) => ({ params: { path: { conversation: q.conversation, question: q.id } } })

const heldFor = ({ what, todo }: Explained) => [what, todo].filter(Boolean).join(' ')

/** The questions that wait on the server until the turns before them have ended. */
export function Queue({ queue, onEdit }: { queue: readonly Queued[]; onEdit: (question: Queued) => void }) {
  const w = useWords()
  const [busy, setBusy] = useState('')
  const change = async (q: Queued, ask: () => Promise<unknown>, then?: () => void) => {
    setBusy(q.id)
    try {
      await ask()
      then?.()
    } catch (error) {
      // What was asked meanwhile is seen among the turns.
      if (asProblem(error).code !== 'question_not_found') complain(error)
    } finally {
      setBusy('')
      await queries.invalidateQueries({ queryKey: ['queue', q.conversation] })
    }
  }
  const drop = (q: Queued) => () => data(client.DELETE('/conversations/{conversation}/queue/{question}', place(q)))
  const again = (q: Queued) => () =>
    data(client.PATCH('/conversations/{conversation}/queue/{question}', { ...place(q), body: {} }))
  if (!queue.length) return null
  return (
    <ul className={css.queue} aria-label={w.composer.queued}>
      {queue.map((q) => (
        <li key={q.id}>
          <span className={css.queuedMark}>{q.held ? w.composer.held : w.composer.queued}</span>
          <span className={css.queuedText}>
            {q.prompt}
            {q.held && (
              <small className={css.heldWhy}>{w.composer.heldWhy[q.held.code] ?? heldFor(explain(q.held))}</small>
            )}
          </span>
          {q.held && (
            <IconButton small label={w.retry} disabled={busy === q.id} onClick={() => void change(q, again(q))}>
              <RotateCw size={14} aria-hidden />
            </IconButton>
          )}
          <IconButton
            small
            label={w.composer.editQueued}
            disabled={busy === q.id}
            onClick={() => void change(q, drop(q), () => onEdit(q))}
          >
            <Pencil size={14} aria-hidden />
          </IconButton>
          <IconButton
            small
            label={w.composer.dropQueued}
            disabled={busy === q.id}
            onClick={() => void change(q, drop(q))}
          >
            <X size={14} aria-hidden />
          </IconButton>
        </li>
      ))}
    </ul>
  )
}
