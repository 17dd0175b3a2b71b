import { useQuery } from '@tanstack/react-query'
import { useEffect, useId, useRef, useState } from 'react'
import { type Caller, client, data } from '../api/client'
import { queries } from '../api/queries'
import { Button, complain, ProblemBox, parts, toast } from '../parts'
import { useWords } from '../words'
import { may } from './admin/rights'
import css from './pages.module.css'

/** How long they may be, in characters; the server has the same bound. */
const longest = 8000

export const useInstructions = (project: string, wanted = true) =>
  useQuery({
    queryKey: ['instructions', project],
    enabled: wanted,
    staleTime: 60_000,
    queryFn: async () =>
      (await data(client.GET('/projects/{project}/instructions', { params: { path: { project } } }))).instructions,
  })

/** What models are asked to do in all conversations of a project: to be changed by those who manage it, to be read by others. */
export function Instructions({ who, project }: { who: Caller; project: string }) {
  const w = useWords()
  const i = w.instructions
  const id = useId()
  const kept = useInstructions(project)
  const [draft, setDraft] = useState<string | null>(null)
  const [busy, setBusy] = useState(false)
  const place = useRef<HTMLElement>(null)
  useEffect(() => {
    if (kept.isSuccess && location.hash === '#instructions') place.current?.scrollIntoView()
  }, [kept.isSuccess])
  const text = draft ?? kept.data ?? ''
  const count = [...text].length
  const save = async () => {
    setBusy(true)
    try {
      const saved = await data(
        client.PUT('/projects/{project}/instructions', { params: { path: { project } }, body: { instructions: text } }),
      )
      queries.setQueryData(['instructions', project], saved.instructions)
      setDraft(null)
      toast(saved.instructions ? i.saved : i.removed)
    } catch (error) {
      complain(error)
    } finally {
      setBusy(false)
    }
  }
  return (
    <section className={css.group} ref={place}>
      <h2 id={id}>{i.title}</h2>
      <p className={css.note}>{i.text}</p>
      {kept.error && <ProblemBox error={kept.error} onRetry={() => void kept.refetch()} />}
      {kept.isSuccess &&
        (may(who, 'users:manage') ? (
          <>
            <textarea
              className={parts.field}
              rows={6}
              aria-labelledby={id}
              placeholder={i.example}
              value={text}
              onChange={(e) => setDraft(e.target.value)}
            />
            <div className={css.saving}>
              <Button
                look="primary"
                disabled={busy || draft === null || draft.trim() === kept.data || count > longest}
                onClick={() => void save()}
              >
                {w.save}
              </Button>
              <span className={css.quiet} aria-live="polite">
                {count > longest ? i.tooLong(count, longest) : ''}
              </span>
            </div>
          </>
        ) : kept.data ? (
          <p className={css.kept}>{kept.data}</p>
        ) : (
          <p className={css.quiet}>{i.none}</p>
        ))}
    </section>
  )
}
