import { X } from 'lucide-react'
import {
  type ButtonHTMLAttributes,
  type ComponentProps,
  type ReactNode,
  useEffect,
  useId,
  useRef,
  useState,
  useSyncExternalStore,
} from 'react'
import { Link } from 'wouter'
import type { Caller } from '../api/client'
import { asProblem, type Problem } from '../api/problem'
import { queries } from '../api/queries'
import { useWords } from '../words'
import { explain, useExplain } from '../words/problems'
import { isComposing } from './keys'
import css from './parts.module.css'

export { type Action, Actions } from './Menu'
export { css as parts }

type Look = 'plain' | 'outlined' | 'primary' | 'danger'

export function Button({ look = 'outlined', className = '', ...rest }: ComponentProps<'button'> & { look?: Look }) {
  const extra = look === 'plain' ? '' : look === 'danger' ? `${css.outlined} ${css.danger}` : css[look]
  return <button type="button" className={`${css.button} ${extra} ${className}`} {...rest} />
}

export function IconButton({
  label,
  small,
  className = '',
  ...rest
}: ButtonHTMLAttributes<HTMLButtonElement> & { label: string; small?: boolean }) {
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      className={`${css.icon} ${small ? css.small : ''} ${className}`}
      {...rest}
    />
  )
}

/** A dialog of the browser's own: it keeps the focus, and Escape closes it. */
export function Dialog({
  title,
  onClose,
  children,
  className = '',
}: {
  title: string
  onClose: () => void
  children: ReactNode
  className?: string
}) {
  const ref = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    const dialog = ref.current
    if (dialog && !dialog.open) dialog.showModal()
    return () => dialog?.close()
  }, [])
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes it, the click beside it is the same for a pointer
    <dialog
      ref={ref}
      className={`${css.dialog} ${className}`}
      aria-labelledby={id}
      onCancel={(e) => {
        e.preventDefault()
        onClose()
      }}
      onClick={(e) => e.target === e.currentTarget && onClose()}
    >
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  )
}

interface Asked {
  title: string
  text?: string
  go: string
  bad?: boolean
  value?: string
  label?: string
  done: (value: string | null) => void
}

let asked: Asked | null = null
interface Toast {
  text: string
  hint?: string
  /** What the server said. */
  detail?: string
  open?: boolean
  bad?: boolean
  /** What it says is over in a moment. */
  passes?: boolean
}

let toasts: (Toast & { id: number })[] = []
let counter = 0
const readers = new Set<() => void>()
const tell = () => {
  for (const call of readers) call()
}
const subscribe = (call: () => void) => {
  readers.add(call)
  return () => {
    readers.delete(call)
  }
}

/** Asks for a yes, or for a line of text when there is a value to begin with. Null means no. */
export const ask = (question: Omit<Asked, 'done'>) =>
  new Promise<string | null>((done) => {
    asked = {
      ...question,
      done: (value) => {
        asked = null
        tell()
        done(value)
      },
    }
    tell()
  })

export function toast(text: string, more: Omit<Toast, 'text'> = {}) {
  const id = ++counter
  toasts = [...toasts.slice(-2), { id, text, ...more }]
  tell()
  const shownFor = more.bad ? more.passes && 12_000 : 5000
  if (shownFor) setTimeout(() => drop(id), shownFor)
}

function drop(id: number) {
  toasts = toasts.filter((t) => t.id !== id)
  tell()
}

/** Says what went wrong; in these words, by its code, where there are some, and after what did go well. */
export function complain(error: unknown, words: Record<string, string> = {}, well = '') {
  const problem = asProblem(error)
  if (problem.status === 401) return
  const said = words[problem.code]
  const { what, todo, detail, open } = explain(problem)
  toast([well, said ?? what].filter(Boolean).join(' '), {
    bad: true,
    passes: problem.passing,
    ...(said ? {} : { hint: todo, detail, open }),
  })
}

function Question({ asked: q }: { asked: Asked }) {
  const w = useWords()
  const [value, setValue] = useState(q.value ?? '')
  const id = useId()
  return (
    <Dialog title={q.title} onClose={() => q.done(null)}>
      <form
        onSubmit={(e) => {
          e.preventDefault()
          q.done(q.value === undefined ? 'yes' : value)
        }}
      >
        {q.text && <p>{q.text}</p>}
        {q.value !== undefined && (
          <div>
            <label className={q.label ? css.label : css.hidden} htmlFor={id}>
              {q.label ?? q.title}
            </label>
            <input
              id={id}
              className={css.field}
              value={value}
              onChange={(e) => setValue(e.target.value)}
              onKeyDown={(e) => {
                if (e.key === 'Enter' && isComposing(e)) e.preventDefault()
              }}
              autoFocus
            />
          </div>
        )}
        <div className={css.row}>
          <Button look="plain" onClick={() => q.done(null)}>
            {w.cancel}
          </Button>
          <Button type="submit" look={q.bad ? 'danger' : 'primary'} disabled={q.value !== undefined && !value.trim()}>
            {q.go}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

/** Where questions and short messages of the whole page are shown. */
export function Overlays() {
  const w = useWords()
  const question = useSyncExternalStore(subscribe, () => asked)
  const shown = useSyncExternalStore(subscribe, () => toasts)
  return (
    <>
      <div className={css.toasts} role="status" aria-live="polite">
        {shown.map((t) => (
          <div key={t.id} className={css.toast} data-bad={t.bad || undefined}>
            <div>
              <p>{t.text}</p>
              {t.hint && <p>{t.hint}</p>}
              <Details text={t.detail} open={t.open} />
            </div>
            <IconButton small label={w.close} onClick={() => drop(t.id)}>
              <X size={14} aria-hidden />
            </IconButton>
          </div>
        ))}
      </div>
      {question && <Question key={question.title} asked={question} />}
    </>
  )
}

/** What the server said itself, below the page's words for it. */
export function Details({ text = '', open = false }: { text?: string | undefined; open?: boolean | undefined }) {
  const w = useWords()
  if (!text) return null
  return (
    <details className={css.details} open={open}>
      <summary>{w.details}</summary>
      <p>{text}</p>
    </details>
  )
}

interface ProblemProps {
  error: Problem | Error | unknown
  onRetry?: (() => void) | undefined
  /** What trying again is called. */
  retry?: string
}

const ofModels = /^(model_(?!context|answer|deadline|stream_truncated)\w+|no_model|ollama_empty|images_unsupported)$/

/** What went wrong, and what its reader can do: who may see to the model service is led there. */
export function ProblemBox({ error, onRetry, retry }: ProblemProps) {
  const w = useWords()
  const problem = asProblem(error)
  const { what, todo, detail, open } = useExplain()(problem)
  const who = queries.getQueryData<Caller>(['me'])
  const sees = who?.admin && ofModels.test(problem.code)
  return (
    <div className={css.problem} role="alert">
      <p>{what}</p>
      {todo && <p>{todo}</p>}
      <Details text={detail} open={open} />
      {(sees || onRetry) && (
        <div className={css.ways}>
          {sees && (
            <Link href="/admin/models" className={`${css.button} ${css.outlined}`}>
              {w.checkModels}
            </Link>
          )}
          {onRetry && (
            <Button look="outlined" onClick={onRetry}>
              {retry ?? w.retry}
            </Button>
          )}
        </div>
      )}
    </div>
  )
}

export function Segments<T extends string>({
  label,
  value,
  options,
  onChange,
}: {
  label: string
  value: T
  /** With an icon, that is what a phone shows. */
  options: { id: T; name: string; icon?: ReactNode }[]
  onChange: (value: T) => void
}) {
  return (
    <fieldset aria-label={label} className={css.segments}>
      {options.map((o) => (
        <button
          key={o.id}
          type="button"
          aria-pressed={o.id === value}
          data-icon={o.icon ? true : undefined}
          title={o.icon ? o.name : undefined}
          onClick={() => onChange(o.id)}
        >
          {o.icon}
          <span>{o.name}</span>
        </button>
      ))}
    </fieldset>
  )
}

export async function copyText(text: string, done: string) {
  try {
    await navigator.clipboard.writeText(text)
    toast(done)
  } catch {
    toast('', { bad: true })
  }
}
