import { type FormEvent, type ReactNode, useId, useState } from 'react'
import { type Caller, client, data, keepDevKey, post } from '../api/client'
import { asProblem, type Problem } from '../api/problem'
import { Button, ProblemBox, parts } from '../parts'
import { isComposing } from '../parts/keys'
import { useWords } from '../words'
import { NameField, PasswordField } from './PasswordField'
import css from './signin.module.css'
import { keepWay, lastWay, usePasswords, type Way } from './ways'

const loopback = /^(localhost|127(\.\d+){3}|\[::1\]|.*\.localhost)$/

const plain = () => location.protocol === 'http:' && !loopback.test(location.hostname)

export const withCode = (code: string) => post<Caller>('sign-in', { code })

async function withKey(key: string): Promise<Caller> {
  try {
    return await post<Caller>('sign-in', { key })
  } catch (error) {
    // A server without sign-in, in development: the key is tried itself.
    if (!import.meta.env.DEV || ![404, 405].includes(asProblem(error).status)) throw error
    keepDevKey(key)
    try {
      return await data(client.GET('/me'))
    } catch (refused) {
      keepDevKey(null)
      throw refused
    }
  }
}

const withPassword = (user: string, password: string) => post<Caller>('sign-in', { user, password })

/** A form before anybody has signed in: what it says, what went wrong, and its fields. */
export function Entrance({
  title,
  problem,
  about,
  onSubmit,
  children,
}: {
  title: string
  problem?: Problem | null
  about?: ReactNode
  onSubmit: (said: FormData) => void
  children: ReactNode
}) {
  const w = useWords()
  const submit = (e: FormEvent<HTMLFormElement>) => {
    e.preventDefault()
    onSubmit(new FormData(e.currentTarget))
  }
  return (
    <main className={css.page}>
      <form
        className={css.box}
        onSubmit={submit}
        onKeyDown={(e) => {
          if (e.key === 'Enter' && isComposing(e)) e.preventDefault()
        }}
      >
        <h1>{title}</h1>
        {about}
        {plain() && <p className={css.warning}>{w.signIn.plain}</p>}
        {problem && <ProblemBox error={problem} />}
        {children}
      </form>
    </main>
  )
}

export function SignIn({ problem: first, onDone }: { problem: Problem | null; onDone: (who: Caller) => void }) {
  const w = useWords()
  const id = useId()
  const passwords = usePasswords()
  const [chosen, setChosen] = useState<Way | null>(lastWay)
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<Problem | null>(first)
  const way: Way = passwords && chosen === 'password' ? 'password' : 'key'
  const submit = async (said: FormData) => {
    const text = (name: string) => String(said.get(name) ?? '')
    if (way === 'key' && !text('key').trim()) return
    setBusy(true)
    try {
      const who =
        way === 'key' ? await withKey(text('key').trim()) : await withPassword(text('user').trim(), text('password'))
      keepWay(way)
      onDone(who)
    } catch (error) {
      setProblem(asProblem(error))
    } finally {
      setBusy(false)
    }
  }
  // Which form it is may take a moment: none is better than one that is taken away.
  if (passwords === null && chosen === 'password')
    return (
      <main className={css.page}>
        <p className={css.quiet}>{w.signIn.checking}</p>
      </main>
    )
  return (
    <Entrance key={way} title={w.signIn.title} problem={problem} onSubmit={(said) => void submit(said)}>
      {way === 'password' ? (
        <>
          <NameField label={w.enter.user} />
          <PasswordField name="password" label={w.enter.password} />
          <p className={css.help}>
            {w.enter.help} {w.enter.lost}
          </p>
        </>
      ) : (
        <>
          <div>
            <label className={parts.label} htmlFor={id}>
              {w.signIn.key}
            </label>
            <input
              id={id}
              className={parts.field}
              name="key"
              type="password"
              autoComplete="current-password"
              spellCheck={false}
              required
              aria-describedby={`${id}-help`}
              // biome-ignore lint/a11y/noAutofocus: the page has this field alone
              autoFocus
            />
          </div>
          <p id={`${id}-help`} className={css.help}>
            {w.signIn.help}
          </p>
        </>
      )}
      <Button type="submit" look="primary" disabled={busy}>
        {busy ? w.signIn.going : w.signIn.go}
      </Button>
      {passwords && (
        <Button
          look="plain"
          onClick={() => {
            setProblem(null)
            setChosen(way === 'key' ? 'password' : 'key')
          }}
        >
          {way === 'key' ? w.enter.byPassword : w.enter.byKey}
        </Button>
      )}
    </Entrance>
  )
}
