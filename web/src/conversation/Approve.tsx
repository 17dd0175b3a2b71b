import { lazy, Suspense, useId, useState } from 'react'
import { Button, complain, parts } from '../parts'
import { isComposing } from '../parts/keys'
import { isSend } from '../shell/preferences'
import { useWords } from '../words'
import { decide } from './actions'
import css from './step.module.css'

const Editor = lazy(async () => ({ default: (await import('../notebook/Editor')).Editor }))

/** Code that waits: it runs as it is or as it was changed, or the model is told why not. */
export function Approve({ turn, step, code, why }: { turn: string; step: number; code: string; why: string }) {
  const w = useWords()
  const id = useId()
  const [text, setText] = useState(code)
  const [refusing, setRefusing] = useState(false)
  const [note, setNote] = useState('')
  const [busy, setBusy] = useState(false)
  const edited = text !== code
  const say = async (run: boolean) => {
    if (busy || (run && !text.trim())) return
    setBusy(true)
    try {
      await decide(turn, {
        step,
        run,
        ...(run && edited ? { code: text } : {}),
        ...(!run && note.trim() ? { note } : {}),
      })
    } catch (error) {
      complain(error)
      setBusy(false)
    }
  }
  return (
    <div data-approve>
      {why && <p className={css.note}>{why}</p>}
      <div className={css.edit}>
        <Suspense fallback={<p className={css.note}>{w.loading}</p>}>
          <Editor
            code={code}
            label={w.approval.code}
            hint={w.notebook.placeholder}
            focused={false}
            onChange={setText}
            onRun={() => void say(true)}
          />
        </Suspense>
      </div>
      {refusing && (
        <div className={css.refusing}>
          <label htmlFor={id}>{w.approval.note}</label>
          <textarea
            id={id}
            className={parts.field}
            rows={2}
            maxLength={4000}
            value={note}
            // biome-ignore lint/a11y/noAutofocus: the person asked to write it
            autoFocus
            onChange={(e) => setNote(e.target.value)}
            onKeyDown={(e) => {
              if (isComposing(e)) return
              if (e.key === 'Escape') setRefusing(false)
              if (!isSend(e)) return
              e.preventDefault()
              void say(false)
            }}
          />
        </div>
      )}
      <div className={css.buttons}>
        {refusing ? (
          <>
            <Button look="primary" disabled={busy} onClick={() => void say(false)}>
              {w.approval.tell}
            </Button>
            <Button look="plain" disabled={busy} onClick={() => setRefusing(false)}>
              {w.cancel}
            </Button>
          </>
        ) : (
          <>
            <Button look="primary" disabled={busy || !text.trim()} onClick={() => void say(true)}>
              {edited ? w.approval.runEdited : w.approval.run}
            </Button>
            <Button disabled={busy} onClick={() => setRefusing(true)}>
              {w.approval.refuse}
            </Button>
          </>
        )}
      </div>
    </div>
  )
}
