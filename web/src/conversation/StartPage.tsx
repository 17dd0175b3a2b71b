import { ArrowRight } from 'lucide-react'
import { lazy, Suspense, useCallback, useRef, useState } from 'react'
import { Link, useLocation } from 'wouter'
import { useMe, useModels } from '../api/queries'
import { storeFile } from '../api/upload'
import { restore, useAttachments } from '../composer/attachments'
import { Composer, type ComposerHandle, type Question } from '../composer/Composer'
import { DropZone } from '../composer/DropZone'
import { exampleFile } from '../composer/example'
import { useInstructions } from '../pages/Instructions'
import { complain, ProblemBox } from '../parts'
import { Page } from '../shell/Page'
import { useWords } from '../words'
import { type Approval, askQuestion } from './actions'
import css from './conversation.module.css'

const FirstNotebook = lazy(() => import('../notebook/FirstNotebook'))
const scope = 'new'

export function StartPage() {
  const w = useWords()
  const [, navigate] = useLocation()
  const models = useModels()
  const composer = useRef<ComposerHandle>(null)
  const [busy, setBusy] = useState(false)
  const files = useAttachments(scope)
  const project = useMe().data?.project ?? ''
  const instructions = useInstructions(project, !!project).data
  const [approval, setApproval] = useState<Approval>('never')

  const ask = useCallback(
    async (question: Question) => {
      setBusy(true)
      try {
        const turn = await askQuestion(question, undefined, approval === 'always' ? { approval } : {})
        navigate(`/c/${turn.conversation}`)
      } catch (error) {
        complain(error)
        restore(scope, question.files)
        composer.current?.fill(question.text)
      } finally {
        setBusy(false)
      }
    },
    [navigate, approval],
  )

  const example = async (text: string) => {
    setBusy(true)
    try {
      const file = exampleFile(w.lang)
      const stored = await storeFile(file, file.name).done
      await ask({
        text,
        files: [{ key: stored.id, id: stored.id, name: file.name, size: file.size, part: 1, error: '', head: [] }],
      })
    } catch (error) {
      complain(error)
    } finally {
      setBusy(false)
    }
  }

  if (models.data?.length === 0)
    return (
      <Suspense fallback={null}>
        <FirstNotebook onCheck={() => void models.refetch()} />
      </Suspense>
    )
  return (
    <Page title="" bare>
      <div className={css.start}>
        <div className={css.hello}>
          <header>
            <h1>{w.start.title}</h1>
            <p>{w.start.text}</p>
          </header>
          {models.error && <ProblemBox error={models.error} onRetry={() => void models.refetch()} />}
          <Composer
            ref={composer}
            scope={scope}
            busy={busy}
            onSend={ask}
            autoFocus
            approval={approval}
            onApproval={setApproval}
          />
          {instructions && (
            <p className={css.applies}>
              {w.instructions.apply} <Link href="/settings#instructions">{w.instructions.show}</Link>
            </p>
          )}
          {/* A question about the example would be about another file than the one that is here. */}
          {!files.length && (
            <div className={css.examples}>
              <p>{w.start.examples}</p>
              {w.start.questions.map((q) => (
                <button key={q} type="button" disabled={busy} onClick={() => void example(q)}>
                  <ArrowRight size={15} aria-hidden />
                  {q}
                </button>
              ))}
            </div>
          )}
        </div>
      </div>
      <DropZone scope={scope} />
    </Page>
  )
}
