import { useEffect, useState } from 'react'
import { type Caller, client, data, post, type Schemas } from '../api/client'
import { asProblem, type Problem } from '../api/problem'
import { Button, ProblemBox, toast } from '../parts'
import { moment } from '../parts/format'
import { useWords } from '../words'
import { NameField, PasswordField } from './PasswordField'
import { Entrance } from './SignIn'
import css from './signin.module.css'
import { keepWay } from './ways'

type Invited = Schemas['Invited']

const maybe = <T,>(work: Promise<T>): Promise<T | null> => work.catch(() => null)

/** What an invitation is to, and the form with which it is accepted. */
export function Invitation({
  code,
  onDone,
  onLeave,
}: {
  code: string
  onDone: (who: Caller) => void
  /** The person wants none of it: who is signed in goes on, everybody else signs in. */
  onLeave: () => void
}) {
  const w = useWords()
  const i = w.invited
  const [invited, setInvited] = useState<Invited | null>(null)
  const [name, setName] = useState<string | null>(null)
  const [anew, setAnew] = useState(false)
  const [refused, setRefused] = useState<Problem | null>(null)
  const [problem, setProblem] = useState<Problem | null>(null)
  const [busy, setBusy] = useState(false)
  const [tries, setTries] = useState(0)
  // biome-ignore lint/correctness/useExhaustiveDependencies: tries asks again
  useEffect(() => {
    let left = false
    const look = async () => {
      try {
        const [said, who] = await Promise.all([
          data(client.POST('/invitations/look', { body: { code } })),
          maybe(data(client.GET('/me'))),
        ])
        const as = who && said.role ? who.user_name : null
        if (left) return
        setName(as)
        setInvited(said)
      } catch (error) {
        if (!left) setRefused(asProblem(error))
      }
    }
    setRefused(null)
    void look()
    return () => {
      left = true
    }
  }, [code, tries])
  const accept = async (body: { user?: string; password?: string }) => {
    setBusy(true)
    setProblem(null)
    try {
      const who = await post<Caller>('invitations/accept', { code, ...body })
      if (body.password) keepWay('password')
      toast(i.joined)
      onDone(who)
    } catch (error) {
      const why = asProblem(error)
      if (/^invitation_/.test(why.code)) setRefused(why)
      else setProblem(why)
    } finally {
      setBusy(false)
    }
  }
  if (refused) return <Refused problem={refused} onLeave={onLeave} onRetry={() => setTries(tries + 1)} />
  if (!invited)
    return (
      <main className={css.page}>
        <p className={css.quiet}>{i.looking}</p>
      </main>
    )
  const until = <p className={css.help}>{i.until(moment(invited.expires_at, w.lang))}</p>
  if (!invited.role)
    return (
      <Entrance
        title={i.newTitle}
        problem={problem}
        about={<p>{i.newText(invited.user ?? '')}</p>}
        onSubmit={(said) =>
          void accept({
            password: String(said.get('password')),
            ...(invited.login ? {} : { user: String(said.get('user')).trim() }),
          })
        }
      >
        {invited.login ? (
          <>
            <p>{i.signInWith(invited.login)}</p>
            {/* Password managers keep the name with the password. */}
            <input type="hidden" name="user" autoComplete="username" value={invited.login} readOnly />
          </>
        ) : (
          <NameField label={w.enter.user} fresh />
        )}
        <PasswordField name="password" label={w.account.next} fresh autoFocus={!!invited.login} />
        {until}
        <Button type="submit" look="primary" disabled={busy}>
          {i.newGo}
        </Button>
      </Entrance>
    )
  const about = (
    <>
      {invited.name && <p>{i.forName(invited.name)}</p>}
      <p>{i.what(w.admin.roles[invited.role] ?? invited.role, w.admin.roleTexts[invited.role] ?? '')}</p>
      {until}
    </>
  )
  if (name && !anew)
    return (
      <Entrance title={i.title(invited.project)} problem={problem} about={about} onSubmit={() => void accept({})}>
        <p>{i.signedIn(name)}</p>
        <Button type="submit" look="primary" disabled={busy}>
          {busy ? i.going : i.joinAs(name)}
        </Button>
        <Button look="plain" onClick={() => setAnew(true)}>
          {i.another}
        </Button>
        <Button look="plain" onClick={onLeave}>
          {i.stay}
        </Button>
      </Entrance>
    )
  return (
    <Entrance
      title={i.title(invited.project)}
      problem={problem}
      about={about}
      onSubmit={(said) =>
        void accept({ user: String(said.get('user')).trim(), password: String(said.get('password')) })
      }
    >
      <p>{i.choose}</p>
      <NameField label={w.enter.user} fresh />
      <PasswordField name="password" label={w.enter.password} fresh />
      <Button type="submit" look="primary" disabled={busy}>
        {busy ? i.going : i.go}
      </Button>
      <Button look="plain" onClick={onLeave}>
        {name ? i.stay : i.toSignIn}
      </Button>
    </Entrance>
  )
}

function Refused({ problem, onLeave, onRetry }: { problem: Problem; onLeave: () => void; onRetry: () => void }) {
  const w = useWords()
  const i = w.invited
  const over = problem.code === 'invitation_unknown' || problem.code === 'invitation_used'
  return (
    <main className={css.page}>
      <div className={css.box} role="alert">
        <h1>{i.badTitle}</h1>
        {over ? (
          <>
            <p>{problem.code === 'invitation_used' ? i.used : i.unknown}</p>
            <p>{i.askAgain}</p>
          </>
        ) : (
          <ProblemBox error={problem} onRetry={onRetry} />
        )}
        <Button look="primary" onClick={onLeave}>
          {i.toSignIn}
        </Button>
      </div>
    </main>
  )
}
