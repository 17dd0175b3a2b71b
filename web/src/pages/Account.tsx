import { type FormEvent, useState } from 'react'
import { type Caller, client, data } from '../api/client'
import { asProblem, type Problem } from '../api/problem'
import { queries } from '../api/queries'
import { Button, Dialog, ProblemBox, parts, toast } from '../parts'
import { isComposing } from '../parts/keys'
import { NameField, PasswordField } from '../signin/PasswordField'
import { keepWay } from '../signin/ways'
import { useWords } from '../words'

/** Sets the caller's password. A first one takes a browser that was signed in with a code. */
export function PasswordDialog({ who, onClose }: { who: Caller; onClose: () => void }) {
  const w = useWords()
  const a = w.account
  const mayFirst = !!who.browser && !who.key
  const first = !who.login
  const [problem, setProblem] = useState<Problem | null>(null)
  const [busy, setBusy] = useState(false)
  const save = async (e: FormEvent<HTMLFormElement>) => {
    e.preventDefault()
    const said = new FormData(e.currentTarget)
    const text = (name: string) => String(said.get(name) ?? '')
    setBusy(true)
    setProblem(null)
    try {
      await data(
        client.PUT('/me/password', {
          body: {
            password: text('password'),
            ...(first ? { user: text('user').trim() } : { current: text('current') }),
          },
        }),
      )
      if (mayFirst) keepWay('password')
      void queries.invalidateQueries({ queryKey: ['me'] })
      toast(a.saved)
      onClose()
    } catch (error) {
      setProblem(asProblem(error))
    } finally {
      setBusy(false)
    }
  }
  if (first && !mayFirst)
    return (
      <Dialog title={a.title} onClose={onClose}>
        <p>{a.first}</p>
        <div className={parts.row}>
          <Button onClick={onClose}>{w.close}</Button>
        </div>
      </Dialog>
    )
  return (
    <Dialog title={a.title} onClose={onClose}>
      <form
        onSubmit={(e) => void save(e)}
        onKeyDown={(e) => {
          if (e.key === 'Enter' && isComposing(e)) e.preventDefault()
        }}
      >
        {problem && <ProblemBox error={problem} />}
        {first ? <NameField label={a.name} fresh /> : <PasswordField name="current" label={a.current} autoFocus />}
        <PasswordField name="password" label={a.next} fresh />
        <p>{a.note}</p>
        <div className={parts.row}>
          <Button look="plain" onClick={onClose}>
            {w.cancel}
          </Button>
          <Button type="submit" look="primary" disabled={busy}>
            {a.save}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
