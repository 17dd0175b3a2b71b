import { client, data } from '../api/client'
import { useMe } from '../api/queries'
import { ask, Button, complain, ProblemBox, toast } from '../parts'
import { day } from '../parts/format'
import { useWords } from '../words'
import { mayShare, refreshShares, type Share, useShares } from './links'
import css from './share.module.css'

/** The links that show something: those of a conversation, or of the whole project. */
export function Links({ conversation }: { conversation?: string }) {
  const w = useWords()
  const s = w.share
  const list = useShares()
  const may = mayShare(useMe().data)
  const shares = list.data?.filter((x) => !conversation || x.conversation === conversation)
  const withdraw = async (share: Share) => {
    if ((await ask({ title: s.withdrawTitle, text: s.withdrawText, go: s.withdraw, bad: true })) === null) return
    try {
      await data(client.DELETE('/shares/{share}', { params: { path: { share: share.id } } }))
      toast(s.withdrawn)
    } catch (error) {
      complain(error)
    }
    await refreshShares()
  }
  return (
    <>
      {list.error && <ProblemBox error={list.error} onRetry={() => void list.refetch()} />}
      {shares && !shares.length && <p className={css.quiet}>{s.none}</p>}
      {!!shares?.length && (
        <ul className={css.links}>
          {shares.map((x) => (
            <li key={x.id}>
              <div>
                {!conversation && <bdi className={css.title}>{x.title || w.nav.untitled}</bdi>}
                <span>
                  {[
                    s.turns(x.turns),
                    x.shows_code ? s.withCode : s.withoutCode,
                    s.made_(day(x.created_at, w.lang)),
                    x.expires_at ? s.until(day(x.expires_at, w.lang)) : s.forever,
                  ].join(' · ')}
                </span>
              </div>
              {may && <Button onClick={() => void withdraw(x)}>{s.withdraw}</Button>}
            </li>
          ))}
        </ul>
      )}
    </>
  )
}
