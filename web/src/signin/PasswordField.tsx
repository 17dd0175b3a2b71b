import { Eye, EyeOff } from 'lucide-react'
import { useId, useState } from 'react'
import { IconButton, parts } from '../parts'
import { useWords } from '../words'
import css from './signin.module.css'
import { lengthOf } from './ways'

/** A field for a password that can be shown. A new one says its rules, and how long it is. */
export function PasswordField({
  name,
  label,
  fresh = false,
  autoFocus = false,
}: {
  name: string
  label: string
  /** It is to be chosen now. */
  fresh?: boolean
  autoFocus?: boolean
}) {
  const w = useWords()
  const id = useId()
  const [shown, setShown] = useState(false)
  const [said, setSaid] = useState('')
  const { n, tooLong } = lengthOf(said)
  return (
    <div>
      <label className={parts.label} htmlFor={id}>
        {label}
      </label>
      <span className={css.secret}>
        <input
          id={id}
          className={parts.field}
          name={name}
          type={shown ? 'text' : 'password'}
          autoComplete={fresh ? 'new-password' : 'current-password'}
          autoCapitalize="none"
          spellCheck={false}
          required
          maxLength={800}
          aria-describedby={fresh ? `${id}-rules` : undefined}
          onChange={fresh ? (e) => setSaid(e.target.value) : undefined}
          // biome-ignore lint/a11y/noAutofocus: the form was opened to write this
          autoFocus={autoFocus}
        />
        <IconButton label={shown ? w.enter.hide : w.enter.show} aria-pressed={shown} onClick={() => setShown(!shown)}>
          {shown ? <EyeOff size={16} aria-hidden /> : <Eye size={16} aria-hidden />}
        </IconButton>
      </span>
      {fresh && (
        <p id={`${id}-rules`} className={css.rules}>
          {w.enter.rules}
          {said && <span> {tooLong ? w.enter.tooLong : w.enter.length(n)}.</span>}
        </p>
      )}
    </div>
  )
}

/** The name that somebody signs in with. */
export function NameField({ label, fresh = false, value }: { label: string; fresh?: boolean; value?: string }) {
  const w = useWords()
  const id = useId()
  return (
    <div>
      <label className={parts.label} htmlFor={id}>
        {label}
      </label>
      <input
        id={id}
        className={parts.field}
        name="user"
        type="text"
        autoComplete="username"
        autoCapitalize="none"
        autoCorrect="off"
        spellCheck={false}
        required
        maxLength={200}
        defaultValue={value}
        aria-describedby={fresh ? `${id}-rules` : undefined}
        // biome-ignore lint/a11y/noAutofocus: the form begins with it
        autoFocus
      />
      {fresh && (
        <p id={`${id}-rules`} className={css.rules}>
          {w.enter.nameRules}
        </p>
      )}
    </div>
  )
}
