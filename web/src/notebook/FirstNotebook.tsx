import { useEffect, useState } from 'react'
import { Link } from 'wouter'
import { client, data, once } from '../api/client'
import { asProblem, type Problem } from '../api/problem'
import { useMe } from '../api/queries'
import { Charting } from '../chart/Charting'
import { may } from '../pages/admin/rights'
import { Panels } from '../panels/Panels'
import { Button, ProblemBox } from '../parts'
import { Page } from '../shell/Page'
import { useWords } from '../words'
import Notebook from './Notebook'
import css from './notebook.module.css'

const place = 'cove.first-session'

/** The first screen of a server without a model: Python, and how to add one. */
export default function FirstNotebook({ onCheck }: { onCheck: () => void }) {
  const w = useWords()
  const me = useMe()
  const [session, setSession] = useState('')
  const [problem, setProblem] = useState<Problem | null>(null)
  const [tries, setTries] = useState(0)
  // biome-ignore lint/correctness/useExhaustiveDependencies: again, when it is tried again
  useEffect(() => {
    let left = false
    const find = async () => {
      const known = localStorage.getItem(place)
      if (known) {
        const s = await data(client.GET('/sessions/{session}', { params: { path: { session: known } } })).catch(
          () => null,
        )
        if (s && s.state !== 'deleted') return s.id
      }
      return (await data(client.POST('/sessions', { params: { header: once() }, body: {} }))).id
    }
    find()
      .then((id) => {
        localStorage.setItem(place, id)
        if (!left) setSession(id)
      })
      .catch((error) => setProblem(asProblem(error)))
    return () => {
      left = true
    }
  }, [tries])
  return (
    <Charting session={session || undefined}>
      <Page title={w.notebook.firstTitle} panels={<Panels session={session || undefined} />}>
        <div className={css.first}>
          <aside className={css.advice}>
            <h2>{w.notebook.noModel}</h2>
            <p>{w.notebook.noModelText}</p>
            <pre>
              {
                'ollama pull qwen3 && cove serve\nOPENAI_API_KEY=… cove serve\nANTHROPIC_API_KEY=… cove serve\nOPENAI_BASE_URL=http://… OPENAI_API_KEY=… cove serve'
              }
            </pre>
            <Button onClick={onCheck}>{w.notebook.check}</Button>
            {me.data && may(me.data, 'server:manage') && (
              <p>
                {w.notebook.orConnect} <Link href="/admin/models">{w.notebook.connect}</Link>
              </p>
            )}
          </aside>
          {problem && (
            <ProblemBox
              error={problem}
              onRetry={() => {
                setProblem(null)
                setTries((n) => n + 1)
              }}
            />
          )}
          {session && <Notebook session={session} />}
        </div>
      </Page>
    </Charting>
  )
}
