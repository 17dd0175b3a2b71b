import { type ReactNode, useEffect, useRef, useState } from 'react'
import { type Caller, client, data, onSignedOut } from '../api/client'
import { asProblem, Problem } from '../api/problem'
import { queries } from '../api/queries'
import { Overlays, ProblemBox } from '../parts'
import { useWords } from '../words'
import { Invitation } from './Invitation'
import { SignIn, withCode } from './SignIn'
import css from './signin.module.css'
import { takeCode, takeInvitation } from './ways'

type State =
  | { kind: 'asking' }
  | { kind: 'in'; who: Caller }
  | { kind: 'invited'; code: string }
  | { kind: 'out'; problem: Problem | null }
  | { kind: 'away'; problem: Problem }

/** Shows the app to who is signed in, and the form to everybody else. */
export function Gate({ children }: { children: (who: Caller) => ReactNode }) {
  const w = useWords()
  const [state, setState] = useState<State>({ kind: 'asking' })
  const begun = useRef(false)
  const enter = (who: Caller) => {
    queries.setQueryData(['me'], who)
    setState({ kind: 'in', who })
  }
  const look = async () => {
    const code = takeCode()
    let used = null as Problem | null
    try {
      if (code) {
        try {
          enter(await withCode(code))
          return
        } catch (error) {
          used = asProblem(error)
        }
      }
      enter(await data(client.GET('/me')))
    } catch (error) {
      const problem = asProblem(error)
      if (problem.status === 401 || problem.status === 403)
        setState({
          kind: 'out',
          problem:
            used &&
            new Problem(used.status, { code: used.code, detail: used.message, hint: used.hint || w.signIn.used }),
        })
      else setState({ kind: 'away', problem })
    }
  }
  // biome-ignore lint/correctness/useExhaustiveDependencies: once, when the page opens
  useEffect(() => {
    const off = onSignedOut(() => setState((s) => (s.kind === 'in' ? { kind: 'out', problem: null } : s)))
    // The address of an invitation may be opened in a tab that shows the page already.
    const invited = () => {
      const code = takeInvitation()
      if (code !== null) setState({ kind: 'invited', code })
      return code !== null
    }
    if (!begun.current) {
      begun.current = true
      if (!invited()) void look()
    }
    window.addEventListener('hashchange', invited)
    return () => {
      off()
      window.removeEventListener('hashchange', invited)
    }
  }, [])
  if (state.kind === 'in') return children(state.who)
  if (state.kind === 'invited')
    return (
      <>
        <Invitation
          key={state.code}
          code={state.code}
          onDone={(who) => {
            // What was read before belongs to another project, or to another user.
            queries.clear()
            enter(who)
          }}
          onLeave={() => {
            setState({ kind: 'asking' })
            void look()
          }}
        />
        <Overlays />
      </>
    )
  if (state.kind === 'out') return <SignIn problem={state.problem} onDone={enter} />
  return (
    <main className={css.page}>
      {state.kind === 'away' ? (
        <ProblemBox
          error={state.problem}
          onRetry={() => {
            setState({ kind: 'asking' })
            void look()
          }}
        />
      ) : (
        <p className={css.quiet}>{w.signIn.checking}</p>
      )}
    </main>
  )
}
