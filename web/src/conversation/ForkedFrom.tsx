import { Link } from 'wouter'
import type { Conversation } from '../api/client'
import { titleOf, useConversation } from '../api/queries'
import { useWords } from '../words'
import css from './conversation.module.css'

/** Where the turns that a fork was made with end, and what it was made from. */
export function ForkedFrom({ origin }: { origin: Conversation['origin'] }) {
  return origin ? <From conversation={origin.conversation} turn={origin.turn} /> : null
}

function From({ conversation, turn }: { conversation: string; turn: string }) {
  const w = useWords()
  const from = useConversation(conversation)
  return (
    <p className={css.forked}>
      <span>
        {w.turn.forkedFrom}{' '}
        {from.data ? (
          <Link href={`/c/${conversation}?turn=${turn}`}>
            <bdi>{titleOf(from.data, w.nav.untitled)}</bdi>
          </Link>
        ) : (
          w.turn.forkOrigin
        )}
      </span>
    </p>
  )
}
