import { lazy, type RefObject, Suspense, useState } from 'react'
import { Button } from '../parts'
import { useWords } from '../words'
import css from './step.module.css'

const Editor = lazy(async () => ({ default: (await import('../notebook/Editor')).Editor }))

interface Props {
  code: string
  onRun: (code: string, all: boolean) => void
  onLeave: () => void
  /** What has the focus afterwards. */
  back: RefObject<HTMLElement | null>
}

/** The code of a step, to be changed and run. Escape leaves it as it was. */
export function EditStep({ code, onRun, onLeave, back }: Props) {
  const w = useWords()
  const [text, setText] = useState(code)
  const leave = () => {
    onLeave()
    back.current?.focus()
  }
  return (
    <>
      <div className={css.edit}>
        <Suspense fallback={<p className={css.note}>{w.loading}</p>}>
          <Editor
            code={code}
            label={w.turn.codeOf}
            hint={w.notebook.placeholder}
            focused
            onChange={setText}
            onRun={() => onRun(text, false)}
            onLeave={leave}
          />
        </Suspense>
      </div>
      <div className={css.buttons}>
        <Button look="primary" disabled={!text.trim()} onClick={() => onRun(text, false)}>
          {w.turn.runEdited}
        </Button>
        <Button disabled={!text.trim()} onClick={() => onRun(text, true)}>
          {w.notebook.runFrom}
        </Button>
        <Button look="plain" onClick={leave}>
          {w.cancel}
        </Button>
      </div>
    </>
  )
}
