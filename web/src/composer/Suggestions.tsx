import { X } from 'lucide-react'
import { useState } from 'react'
import { useMe } from '../api/queries'
import { may } from '../pages/admin/rights'
import { IconButton } from '../parts'
import { useWords } from '../words'
import type { Attachment } from './attachments'
import css from './composer.module.css'
import { type Known, suggest } from './suggest'

const place = 'cove.suggest.hidden'
const mostHidden = 100

function hiddenOnes(): string[] {
  try {
    const said: unknown = JSON.parse(sessionStorage.getItem(place) ?? '[]')
    return Array.isArray(said) ? said.filter((s) => typeof s === 'string') : []
  } catch {
    return []
  }
}

function hide(what: string) {
  try {
    sessionStorage.setItem(place, JSON.stringify([what, ...hiddenOnes()].slice(0, mostHidden)))
  } catch {
    // Storage is full or forbidden: they are hidden until the page is left.
  }
}

/** What a conversation has tables of, and what was asked in it. */
export interface Offer {
  known: readonly Known[]
  asked: readonly string[]
}

interface Props {
  scope: string
  files: readonly Attachment[]
  offer?: Offer | undefined
  onChoose: (question: string) => void
  onHide: () => void
}

/** A few questions about the files that are attached, or else about what the conversation has. One that is chosen is written, and not sent. */
export function Suggestions({ scope, files, offer, onChoose, onHide }: Props) {
  const w = useWords()
  const me = useMe().data
  const [hidden, setHidden] = useState(hiddenOnes)
  const about = files.length ? `${scope} ${files.map((f) => f.name).join('/')}` : scope
  // Files whose beginning is still read would change the questions under the pointer.
  const looking = files.some((f) => !f.table && !f.id && !f.error)
  if (!me || !may(me, 'sessions:execute') || looking || hidden.includes(about)) return null
  const known = files.length ? files.map((f) => ({ name: f.name, columns: f.table?.columns ?? [] })) : offer?.known
  const questions = suggest(known ?? [], w.suggest, offer?.asked)
  if (!questions.length) return null
  return (
    // biome-ignore lint/a11y/useSemanticElements: nothing here is a field of the form
    <div className={css.suggested} role="group" aria-label={w.suggest.label}>
      <div className={css.questions}>
        {questions.map((q) => (
          <button key={q} type="button" dir="auto" title={q} onClick={() => onChoose(q)}>
            {q}
          </button>
        ))}
      </div>
      <IconButton
        small
        label={w.suggest.hide}
        onClick={() => {
          hide(about)
          setHidden((now) => [about, ...now])
          onHide()
        }}
      >
        <X size={14} aria-hidden />
      </IconButton>
    </div>
  )
}
