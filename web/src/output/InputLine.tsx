import { createContext, memo, useContext, useEffect, useId, useRef, useState } from 'react'
import { inText, isComposing } from '../parts/keys'
import { explain } from '../words/problems'
import css from './input.module.css'
import type { InputReplyEvent, InputRequestEvent } from './types'
import { words } from './words'

/** Gives code the line that it waits for, or the end of its input; null where nobody can. */
export const AnswerContext = createContext<
  ((number: number, answer: { text: string } | { end: true }) => Promise<unknown>) | null
>(null)

const longest = 65_536
// What a terminal takes as a colour or the like is no part of a prompt.
// biome-ignore lint/suspicious/noControlCharactersInRegex: that is what is looked for
const signs = /\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x08\x0b-\x1f\x7f]/g

export const promptText = (prompt: unknown): string =>
  typeof prompt === 'string' ? prompt.slice(0, 5000).replace(signs, '') : ''

/** What the code asks for, and the answer to it. */
export const InputLine = memo(function InputLine({
  event,
  reply,
  live,
}: {
  event: InputRequestEvent
  reply: InputReplyEvent | null
  live: boolean
}) {
  const w = words()
  const id = useId()
  const answer = useContext(AnswerContext)
  const box = useRef<HTMLDivElement>(null)
  const prompt = promptText(event.prompt)
  const asks = !reply && live && answer !== null
  return (
    // What is answered keeps the focus, so that the next question finds the person here.
    <div className={css.input} ref={box} tabIndex={-1}>
      {prompt.trim() ? (
        <label className={css.prompt} htmlFor={asks ? id : undefined}>
          {prompt.trimEnd()}
        </label>
      ) : (
        asks && (
          <label className={css.unnamed} htmlFor={id}>
            {w.inputField}
          </label>
        )
      )}
      {asks ? (
        <Field id={id} password={event.password === true} send={(a) => answer(event.number, a)} box={box} />
      ) : (
        <Answered event={event} reply={reply} live={live} />
      )}
    </div>
  )
})

function Answered({ event, reply, live }: { event: InputRequestEvent; reply: InputReplyEvent | null; live: boolean }) {
  const w = words()
  if (!reply) return <span className={css.none}>{live ? w.inputWaits : w.inputNone}</span>
  if (reply.ended === true) return <span className={css.none}>{w.inputNone}</span>
  if (event.password === true || typeof reply.text !== 'string')
    return (
      <span className={css.said} role="img" aria-label={w.inputHidden}>
        ••••••••
      </span>
    )
  return <bdi className={css.said}>{reply.text}</bdi>
}

interface FieldProps {
  id: string
  password: boolean
  send: (answer: { text: string } | { end: true }) => Promise<unknown>
  box: React.RefObject<HTMLDivElement | null>
}

function Field({ id, password, send, box }: FieldProps) {
  const w = words()
  const field = useRef<HTMLInputElement>(null)
  const [text, setText] = useState('')
  const [busy, setBusy] = useState(false)
  const [failed, setFailed] = useState('')
  useEffect(() => {
    // Only a person who is at this step, and does not write there, is led here.
    const now = document.activeElement
    if (now && !inText(now) && box.current?.closest('section')?.contains(now)) field.current?.focus()
  }, [box])
  const say = async (answer: { text: string } | { end: true }) => {
    if (busy) return
    setBusy(true)
    setFailed('')
    const here = box.current?.contains(document.activeElement)
    if (here) box.current?.focus({ preventScroll: true }) // the field may go, and the next one come, before the answer to this
    try {
      await send(answer)
    } catch (error) {
      setFailed(error instanceof Error ? explain(error).what : String(error))
      setBusy(false)
      if (here) field.current?.focus()
    }
  }
  return (
    <form
      className={css.form}
      onSubmit={(e) => {
        e.preventDefault()
        void say({ text })
      }}
    >
      <input
        ref={field}
        id={id}
        className={css.field}
        type={password ? 'password' : 'text'}
        value={text}
        maxLength={longest}
        readOnly={busy}
        autoComplete="off"
        autoCapitalize="off"
        spellCheck={false}
        dir="auto"
        enterKeyHint="send"
        aria-describedby={failed ? `${id}-failed` : undefined}
        onChange={(e) => setText(e.target.value)}
        onKeyDown={(e) => {
          e.stopPropagation()
          if (e.key === 'Enter' && isComposing(e)) e.preventDefault()
        }}
      />
      <button type="button" className={css.end} disabled={busy} onClick={() => void say({ end: true })}>
        {w.inputEnd}
      </button>
      {failed && (
        <span id={`${id}-failed`} role="alert" className={css.failed}>
          {failed}
        </span>
      )}
    </form>
  )
}
