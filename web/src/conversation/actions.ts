import { type Conversation, client, data, insist, once, type Session, type Turn } from '../api/client'
import { asProblem, Problem } from '../api/problem'
import { keepTurn, queries } from '../api/queries'
import { attached } from '../composer/attachments'
import type { Question } from '../composer/Composer'
import { turnLive } from '../events/live'
import { ask, complain, toast } from '../parts'
import { preferences } from '../shell/preferences'
import type { Words } from '../words'
import { acknowledge } from './Rollback'

interface More {
  parent?: string
  /** Another version of the first question. */
  first?: boolean
  /** Of this turn alone, for the model. */
  instructions?: string
  session?: string
  /** Of a new conversation: whether code waits for its person. */
  approval?: Approval
}

export type Approval = 'never' | 'always'

const bodyOf = (question: Question, approval?: Approval) => ({
  prompt: question.text,
  source: 'web' as const,
  ...(question.files.length ? { files: question.files.map((f) => f.id) } : {}),
  ...(question.model ? { model: question.model } : {}),
  ...(preferences().checks ? { check: true } : {}),
  // Code that waits for its person is not tried several times.
  ...(preferences().tries > 1 && approval !== 'always' ? { tries: { number: preferences().tries } } : {}),
})

const approvalOf = (conversation?: string) =>
  conversation ? queries.getQueryData<Conversation>(['conversation', conversation])?.approval : undefined

/** What was put before is on the server before what is put next: its order is that of coming. */
let putting: Promise<unknown> = Promise.resolve()

/** Has the server ask when the turns before have ended, whether or not the page stays. */
export async function putQuestion(question: Question, conversation: string) {
  await changing.get(conversation)
  const request = {
    params: { path: { conversation }, header: once() },
    body: bodyOf(question, approvalOf(conversation)),
  }
  const put = putting.then(() => insist(() => data(client.POST('/conversations/{conversation}/queue', request))))
  putting = put.catch(() => {})
  await put
  await queries.invalidateQueries({ queryKey: ['queue', conversation] })
}

/** Asks, in a conversation or in a new one. The turn goes on whether or not the page stays. */
export async function askQuestion(question: Question, conversation?: string, more: More = {}): Promise<Turn> {
  if (conversation) await changing.get(conversation)
  const headers = once()
  const body = { ...bodyOf(question, more.approval ?? approvalOf(conversation)), ...more }
  const query = { background: true }
  const turn = (await insist(() =>
    conversation
      ? data(
          client.POST('/conversations/{conversation}/turns', {
            params: { path: { conversation }, query, header: headers },
            body,
          }),
        )
      : data(client.POST('/turns', { params: { query, header: headers }, body })),
  )) as Turn
  keepTurn(turn)
  turnLive(turn.id, true)
  void queries.invalidateQueries({ queryKey: ['conversations'] })
  return turn
}

export async function stopTurn(turn: Turn) {
  try {
    await data(client.POST('/turns/{turn}/cancel', { params: { path: { turn: turn.id } } }))
  } catch (error) {
    complain(error)
  }
}

/** Lets code that waits run, as it is or changed, or tells the model why not. What follows comes as events. */
export async function decide(turn: string, word: { step: number; run: boolean; code?: string; note?: string }) {
  await data(client.POST('/turns/{turn}/approve', { params: { path: { turn } }, body: word }))
}

/** Changes of approval that are under way. What is asked after one must not come to the server before it. */
const changing = new Map<string, Promise<Conversation>>()

export async function setApproval(conversation: string, approval: Approval) {
  const change = data(
    client.PATCH('/conversations/{conversation}', { params: { path: { conversation } }, body: { approval } }),
  )
  changing.set(conversation, change)
  try {
    queries.setQueryData(['conversation', conversation], await change)
  } catch (error) {
    complain(error)
  } finally {
    if (changing.get(conversation) === change) changing.delete(conversation)
  }
}

/** Asks an edited question as another version of a turn, with the state of Python that was there before it. */
export async function askAgain(turn: Turn, text: string, w: Words): Promise<Turn> {
  let session: Session | null = null
  // What was lost with it was said there, and is not the new version's.
  if (turn.state === 'lost' && turn.session) await acknowledge(turn.session).catch(() => {})
  // A fork has no points of its own: those of a copied turn are in the session that the turn was asked in.
  const from = { turn: turn.origin?.turn ?? turn.id, session: turn.origin ? turn.origin.session : turn.session }
  if (from.session) {
    try {
      session = await data(
        client.POST('/sessions/{session}/fork', {
          params: { path: { session: from.session }, header: once() },
          body: { point: from.turn },
        }),
      )
    } catch (error) {
      const problem = asProblem(error)
      if (!(problem instanceof Problem) || problem.passing || problem.status === 401) throw error
      toast(turn.parent ? w.turn.noPoint : w.turn.noPointNew, { hint: problem.hint })
    }
  }
  // A first question began with nothing.
  const bare = !session && !turn.parent
  session ??= bare ? await data(client.POST('/sessions', { params: { header: once() }, body: {} })) : null
  // The state before the turn does not have the files that came with it.
  const files = attached(turn.files)
  const asked = await askQuestion({ text, files }, turn.conversation, {
    ...(turn.parent ? { parent: turn.parent } : { first: true }),
    ...(session ? { session: session.id } : {}),
  })
  if (session && !bare) toast(w.turn.newState)
  return asked
}

/** Has what follows the end of a branch go on with the variables and files from before a turn of it. */
export async function goBack(turn: Turn, branch: readonly Turn[], w: Words): Promise<boolean> {
  const last = branch.at(-1)
  if (!last) return false
  const later = branch.length - branch.findIndex((t) => t.id === turn.id)
  const yes = await ask({ title: w.turn.backTitle, text: w.turn.backText(later), go: w.turn.backGo })
  if (yes === null) return false
  try {
    keepTurn(
      await data(client.PUT('/turns/{turn}/undone', { params: { path: { turn: last.id } }, body: { from: turn.id } })),
    )
    return true
  } catch (error) {
    complain(error)
    return false
  }
}

/** Takes goBack back. Both say whether it was done. */
export async function goOnAfter(last: Turn): Promise<boolean> {
  try {
    await data(client.DELETE('/turns/{turn}/undone', { params: { path: { turn: last.id } } }))
    const { undone: _, ...rest } = last
    keepTurn(rest)
    return true
  } catch (error) {
    complain(error)
    return false
  }
}
