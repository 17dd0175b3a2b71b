import { client, data, once, type Session, type Turn } from '../api/client'
import { executionLive, turnLive } from '../events/live'
import { type StepView, steps } from '../events/turn'
import { toast } from '../parts'
import type { Words } from '../words'
import { askQuestion } from './actions'
import { ended, rerunOf } from './reruns'

// A new answer to a question whose steps a person has changed and run again.

const mostSteps = 30
const longestCode = 8000
const longestOutput = 3000

const cut = (text: string, most: number) => (text.length > most ? `${text.slice(0, most)}\n[cut]` : text)

/** What a step wrote, as text. */
function writtenBy(view: Pick<StepView, 'items'>): string {
  let out = ''
  for (const item of view.items) {
    if (out.length > longestOutput) break
    if (item.type === 'stream') out += typeof item.text === 'string' ? item.text : ''
    else if (item.type === 'result' || item.type === 'display') {
      const text = item.data?.['text/plain']
      if (typeof text === 'string') out += `${text}\n`
    } else if (item.type === 'input_request') out += item.prompt
    else if (item.type === 'input_reply') out += `${item.text ?? ''}\n`
    else if (item.type === 'error') out += `${String(item.name)}: ${String(item.value)}\n`
  }
  return cut(out.trim(), longestOutput)
}

const fenced = (text: string) => {
  const fence = '`'.repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map((m) => m[0].length + 1)))
  return `${fence}\n${text}\n${fence}`
}

/** Says to the model what ran for a question, with the changes of the person. */
export async function toldOf(turns: readonly Turn[], turn: Turn): Promise<string> {
  const parts: string[] = []
  for (const t of turns) {
    const live = turnLive(t.id, false)
    await ended(live, (v) => v.state !== 'running')
    for (const step of steps(live.view)) {
      const again = rerunOf(`${t.id}/${step.number}`)
      if (!again?.execution && (t.id !== turn.id || step.state !== 'ok')) continue
      let view: Pick<StepView, 'items'> = step
      if (again?.execution) {
        const run = executionLive(again.execution, true, again.code)
        await ended(run, (v) => !!v.done || v.state === 'failed')
        view = run.view
      }
      const written = writtenBy(view)
      parts.push(
        `${again ? 'Changed and run again by the user' : 'Run before that'}:\n${fenced(cut(again?.code ?? step.code, longestCode))}\n${written ? `It wrote:\n${fenced(written)}` : 'It wrote nothing.'}`,
      )
    }
    if (t.id === turn.id) break
  }
  return [
    'The user has changed steps that were run before, and run them again; the session has the variables and files of that. Answer the question by what holds now. What ran before a changed step does not know of the change: run what depends on it again.',
    ...parts.slice(-mostSteps),
  ].join('\n\n')
}

/** Asks a question once more, with what the session has now. */
export async function answerAnew(turn: Turn, turns: readonly Turn[], session: string, w: Words): Promise<Turn> {
  const instructions = await toldOf(turns, turn)
  // The present version keeps its session.
  const fork: Session | null = await data(
    client.POST('/sessions/{session}/fork', { params: { path: { session }, header: once() }, body: {} }),
  ).catch(() => null)
  const asked = await askQuestion({ text: turn.prompt, files: [] }, turn.conversation, {
    ...(turn.parent ? { parent: turn.parent } : { first: true }),
    session: fork?.id ?? session,
    instructions,
  })
  if (fork) toast(w.turn.anewState)
  return asked
}
