import { ThumbsDown, ThumbsUp } from 'lucide-react'
import { client, data, type Turn } from '../api/client'
import { keepTurn } from '../api/queries'
import { ask, complain, IconButton } from '../parts'
import { useWords, type Words } from '../words'

/** Rates an answer; the same word once more takes it back. Of a bad one it is asked what is wrong, which may stay unsaid. */
async function rate(turn: Turn, good: boolean, w: Words) {
  const params = { path: { turn: turn.id } }
  try {
    if (turn.rating?.good === good) {
      await data(client.DELETE('/turns/{turn}/rating', { params }))
      const { rating: _, ...rest } = turn
      keepTurn(rest)
      return
    }
    keepTurn(await data(client.PUT('/turns/{turn}/rating', { params, body: { good } })))
    if (good) return
    const reason = await ask({ title: w.rating.why, label: w.rating.reason, value: '', go: w.rating.send })
    if (reason?.trim())
      keepTurn(
        await data(client.PUT('/turns/{turn}/rating', { params, body: { good, reason: reason.slice(0, 2000) } })),
      )
  } catch (error) {
    complain(error)
  }
}

export function Rate({ turn }: { turn: Turn }) {
  const w = useWords()
  return (
    <>
      <IconButton
        small
        label={w.rating.good}
        aria-pressed={turn.rating?.good === true}
        onClick={() => void rate(turn, true, w)}
      >
        <ThumbsUp size={15} aria-hidden />
      </IconButton>
      <IconButton
        small
        label={w.rating.bad}
        aria-pressed={turn.rating?.good === false}
        onClick={() => void rate(turn, false, w)}
      >
        <ThumbsDown size={15} aria-hidden />
      </IconButton>
    </>
  )
}
