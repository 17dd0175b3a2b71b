import { type Conversation, client, data, once, type Turn } from '../api/client'
import { asProblem } from '../api/problem'
import { queries } from '../api/queries'
import { ask, complain, toast } from '../parts'
import type { Words } from '../words'

/** What of Python a fork has: as it was after the turn, as it is now, or nothing. */
type State = 'then' | 'now' | 'none'

const forkAt = (turn: Turn, title: string, state: State) =>
  data(
    client.POST('/conversations/{conversation}/fork', {
      params: { path: { conversation: turn.conversation }, header: once() },
      body: { turn: turn.id, title, state },
    }),
  )

/** What a fork can have instead of the state after its last turn, and what is said of that. */
const instead: Record<string, { state: State; text: (w: Words) => string }> = {
  point_unknown: { state: 'now', text: (w) => w.turn.forkNow },
  pause_unsupported: { state: 'none', text: (w) => w.turn.forkBare },
}

/** What a server takes for a title, in bytes. */
const longestTitle = 200

/** What a fork is called. A fork of a fork is called as that is. */
export function nameOf(title: string, w: Words): string {
  const name = title.endsWith(w.turn.forkTitle('')) ? title : w.turn.forkTitle(title)
  return new TextEncoder().encode(name).length <= longestTitle ? name : nameOf([...title].slice(0, -8).join(''), w)
}

/** Makes a conversation of its own from the branch that ends with a turn. Null: not, and why was said. */
export async function forkConversation(turn: Turn, title: string, w: Words): Promise<Conversation | null> {
  const name = nameOf(title, w)
  try {
    const made = await forkAt(turn, name, 'then').catch(async (error) => {
      const other = instead[asProblem(error).code ?? '']
      if (!other) throw error
      const yes = await ask({ title: w.turn.fork, text: other.text(w), go: w.turn.forkGo })
      return yes === null ? null : forkAt(turn, name, other.state)
    })
    if (!made) return null
    toast(w.turn.forked)
    void queries.invalidateQueries({ queryKey: ['conversations'] })
    return made
  } catch (error) {
    complain(error)
    return null
  }
}
