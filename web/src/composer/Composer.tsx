import { ArrowUp, ListPlus, Paperclip, ShieldCheck, Square } from 'lucide-react'
import { memo, type Ref, useEffect, useImperativeHandle, useLayoutEffect, useRef, useState } from 'react'
import { useModels } from '../api/queries'
import { onAbout } from '../panels/about'
import { IconButton, toast } from '../parts'
import { bytes, plainName } from '../parts/format'
import { isComposing, modKey } from '../parts/keys'
import { isSend, usePreferences } from '../shell/preferences'
import { useWords } from '../words'
import { type Attachment, attach, clear, useAttachments } from './attachments'
import { Chips } from './Chips'
import css from './composer.module.css'
import { pastedFiles } from './drop'
import { type Offer, Suggestions } from './Suggestions'
import { pastedTable } from './table'

export interface Question {
  text: string
  files: Attachment[]
  model?: string
}

export interface ComposerHandle {
  focus: () => void
  fill: (text: string) => void
}

interface Props {
  /** What is being written is kept under this name. */
  scope: string
  busy: boolean
  onSend: (question: Question) => void
  onStop?: () => void
  onUp?: () => void
  placeholder?: string
  autoFocus?: boolean
  /** Whether the model's code waits for the person; null while that is not known. */
  approval?: 'never' | 'always' | null
  onApproval?: (to: 'never' | 'always') => void
  /** What may be asked about while no files are attached. */
  offer?: Offer | undefined
  ref?: Ref<ComposerHandle>
}

const draftOf = (scope: string) => `cove.draft.${scope}`
const modelPlace = 'cove.model'

/** Grows with its text. Where the browser can do that by itself, it does. */
function grow(area: HTMLTextAreaElement) {
  if (CSS.supports?.('field-sizing', 'content')) return
  area.style.height = 'auto'
  area.style.height = `${area.scrollHeight}px`
}

export const Composer = memo(function Composer({
  scope,
  busy,
  onSend,
  onStop,
  onUp,
  placeholder,
  autoFocus,
  approval,
  onApproval,
  offer,
  ref,
}: Props) {
  const w = useWords()
  const { sendKey } = usePreferences()
  const area = useRef<HTMLTextAreaElement>(null)
  const picker = useRef<HTMLInputElement>(null)
  const [empty, setEmpty] = useState(true)
  const files = useAttachments(scope)
  const models = useModels().data ?? []
  const [model, setModel] = useState(() => localStorage.getItem(modelPlace) ?? '')
  const chosen = models.some((m) => m.id === model) ? model : ''
  const waiting = files.some((f) => !f.id && !f.error)
  const [wanted, setWanted] = useState(false) // sent while files were on their way
  const ready = !empty && !waiting

  const tooLarge = (most: number) => w.shell.tooLarge(bytes(most))

  const set = (text: string) => {
    if (!area.current) return
    area.current.value = text
    setEmpty(!text.trim())
    grow(area.current)
  }
  useImperativeHandle(ref, () => ({
    focus: () => area.current?.focus(),
    fill: (text) => {
      // What is being written meanwhile stays.
      const now = area.current?.value ?? ''
      const next = now.trim() ? `${text}\n\n${now}` : text
      set(next)
      sessionStorage.setItem(draftOf(scope), next)
      area.current?.focus()
    },
  }))
  // biome-ignore lint/correctness/useExhaustiveDependencies: the box that is there
  useEffect(
    () =>
      onAbout((text) => {
        const now = area.current?.value ?? ''
        set(now.trim() ? `${now}\n\n${text}` : text)
        sessionStorage.setItem(draftOf(scope), area.current?.value ?? '')
        area.current?.focus()
      }),
    [scope],
  )
  // biome-ignore lint/correctness/useExhaustiveDependencies: the draft of this scope
  useLayoutEffect(() => {
    set(sessionStorage.getItem(draftOf(scope)) ?? '')
  }, [scope])
  useEffect(() => {
    if (autoFocus && matchMedia('(pointer: fine)').matches) area.current?.focus()
  }, [autoFocus])

  const submit = () => {
    const text = area.current?.value.trim() ?? ''
    setWanted(!!text && waiting)
    if (!text || waiting) return
    onSend({ text, files: files.filter((f) => f.id), ...(chosen ? { model: chosen } : {}) })
    clear(scope)
    set('')
    sessionStorage.removeItem(draftOf(scope))
  }

  // biome-ignore lint/correctness/useExhaustiveDependencies: once, when the files have come
  useEffect(() => {
    if (wanted && !waiting) submit()
  }, [wanted, waiting])

  const choose = (question: string) => {
    set(question)
    sessionStorage.setItem(draftOf(scope), question)
    area.current?.focus()
  }

  return (
    <form
      className={css.form}
      onSubmit={(e) => {
        e.preventDefault()
        submit()
      }}
    >
      {empty && !busy && (
        <Suggestions scope={scope} files={files} offer={offer} onChoose={choose} onHide={() => area.current?.focus()} />
      )}
      <div className={css.composer}>
        <Chips scope={scope} files={files} />
        <textarea
          ref={area}
          className={css.area}
          rows={1}
          aria-label={w.composer.label}
          placeholder={
            placeholder ??
            (files.length ? w.composer.askOf(files.map((f) => plainName(f.name)).join(', ')) : w.composer.ask)
          }
          onInput={(e) => {
            const area = e.currentTarget
            setEmpty(!area.value.trim())
            if (!(e.nativeEvent as InputEvent).isComposing) grow(area)
            sessionStorage.setItem(draftOf(scope), area.value)
          }}
          onKeyDown={(e) => {
            if (isComposing(e)) return
            if (isSend(e)) {
              e.preventDefault()
              submit()
            } else if (e.key === 'ArrowUp' && !e.currentTarget.value && onUp) {
              e.preventDefault()
              onUp()
            }
          }}
          onPaste={(e) => {
            const pasted = pastedFiles(e.clipboardData.files, w.shell.image)
            // A spreadsheet gives a picture of the cells, too.
            const table = pasted.some((f) => !f.type.startsWith('image/'))
              ? null
              : pastedTable({ html: e.clipboardData.getData('text/html'), text: e.clipboardData.getData('text/plain') })
            if (table) {
              attach(scope, [new File([table.csv], w.composer.table, { type: 'text/csv' })], tooLarge)
              toast(w.composer.rows(table.rows))
            } else if (pasted.length) attach(scope, pasted, tooLarge)
            else return
            e.preventDefault()
            e.stopPropagation()
          }}
        />
        <div className={css.bar}>
          <IconButton label={w.composer.attach} onClick={() => picker.current?.click()}>
            <Paperclip size={18} aria-hidden />
          </IconButton>
          <input
            ref={picker}
            type="file"
            multiple
            hidden
            onChange={(e) => {
              attach(scope, e.currentTarget.files ?? [], tooLarge)
              e.currentTarget.value = ''
              area.current?.focus()
            }}
          />
          <span className={css.space} />
          {onApproval && approval && (
            <button
              type="button"
              role="switch"
              aria-checked={approval === 'always'}
              aria-label={w.approval.ask}
              title={w.approval.ask}
              className={css.approval}
              onClick={() => onApproval(approval === 'always' ? 'never' : 'always')}
            >
              <ShieldCheck size={16} aria-hidden />
              <span>{approval === 'always' ? w.approval.on : w.approval.off}</span>
            </button>
          )}
          {models.length > 1 && (
            <select
              className={css.model}
              aria-label={w.composer.model}
              value={chosen || models.find((m) => m.default)?.id}
              onChange={(e) => {
                setModel(e.target.value)
                localStorage.setItem(modelPlace, e.target.value)
              }}
            >
              {models.map((m) => (
                <option key={m.id} value={m.id}>
                  {m.id}
                </option>
              ))}
            </select>
          )}
          {busy && onStop && (empty || !ready) ? (
            <IconButton label={w.composer.stop} className={css.go} onClick={onStop}>
              <Square size={14} fill="currentColor" aria-hidden />
            </IconButton>
          ) : (
            <IconButton
              type="submit"
              label={busy ? w.composer.queue : w.composer.send}
              aria-keyshortcuts={sendKey === 'enter' ? `Enter ${modKey}+Enter` : `${modKey}+Enter`}
              className={css.go}
              disabled={!ready}
            >
              {busy ? <ListPlus size={18} aria-hidden /> : <ArrowUp size={18} aria-hidden />}
            </IconButton>
          )}
        </div>
      </div>
    </form>
  )
})
