import { Component, type ReactNode } from 'react'
import { noteFailure } from '../api/connection'
import { Problem } from '../api/problem'
import { ProblemBox } from '../parts'
import { useWords } from '../words'
import { Page } from './Page'
import css from './shell.module.css'

function Told({ error }: { error: Error }) {
  const w = useWords()
  const unloaded = /dynamically imported module|importing a module|module script/i.test(error.message)
  const problem = unloaded ? new Problem(0, { code: 'unloaded', detail: w.shell.unloaded }) : error
  return (
    <Page title="" bare>
      <div className={css.sheet}>
        <div>
          <ProblemBox error={problem} onRetry={() => location.reload()} />
        </div>
      </div>
    </Page>
  )
}

/** Keeps the list at the side when a page fails, as when a part of the program cannot be loaded. Going elsewhere leaves it. */
export class Fault extends Component<{ at: string; children: ReactNode }, { error: Error | null; at: string }> {
  state = { error: null as Error | null, at: this.props.at }
  static getDerivedStateFromError(error: unknown) {
    return { error: error instanceof Error ? error : new Error(String(error)) }
  }
  static getDerivedStateFromProps(props: { at: string }, state: { at: string }) {
    return props.at === state.at ? null : { at: props.at, error: null }
  }
  componentDidCatch(error: unknown) {
    if (error instanceof TypeError) noteFailure()
  }
  render() {
    return this.state.error ? <Told error={this.state.error} /> : this.props.children
  }
}
