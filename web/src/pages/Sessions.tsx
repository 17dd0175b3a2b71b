import { useInfiniteQuery } from '@tanstack/react-query'
import { Pause, Play, Plus, Trash2 } from 'lucide-react'
import { Link, useLocation } from 'wouter'
import { client, data, once, type Session } from '../api/client'
import { queries } from '../api/queries'
import { changeState, State } from '../panels/SessionPanel'
import { Actions, ask, Button, complain, ProblemBox } from '../parts'
import { bytes, moment } from '../parts/format'
import { Sheet } from '../shell/Page'
import { useWords } from '../words'
import css from './pages.module.css'
import { nameOf } from './sessionName'

const again = () => queries.invalidateQueries({ queryKey: ['sessions'] })

function Name({ session }: { session: Session }) {
  const { main, files } = nameOf(session, useWords())
  return (
    <span className={css.main} title={session.id}>
      <bdi>{main}</bdi>
      {files && (
        <small>
          <bdi>{files}</bdi>
        </small>
      )}
    </span>
  )
}

export default function Sessions() {
  const w = useWords()
  const [, navigate] = useLocation()
  const list = useInfiniteQuery({
    queryKey: ['sessions'],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam }) =>
      data(
        client.GET('/sessions', {
          params: { query: { limit: 50, conversations: true, ...(pageParam ? { after: pageParam } : {}) } },
        }),
      ),
    getNextPageParam: (page) => page.next,
  })
  const sessions = list.data?.pages.flatMap((p) => p.items).filter((s) => s.state !== 'deleted') ?? []
  const remove = async (s: Session) => {
    const text = w.sessions.what(nameOf(s, w).main)
    if ((await ask({ title: w.sessions.deleteTitle, text, go: w.remove, bad: true })) === null) return
    try {
      await data(client.DELETE('/sessions/{session}', { params: { path: { session: s.id } } }))
    } catch (error) {
      complain(error)
    }
    await again()
  }
  const make = async () => {
    try {
      navigate(`/s/${(await data(client.POST('/sessions', { params: { header: once() }, body: {} }))).id}`)
    } catch (error) {
      complain(error)
    }
  }
  return (
    <Sheet
      title={w.sessions.title}
      text={w.sessions.text}
      actions={
        <Button onClick={() => void make()}>
          <Plus size={15} aria-hidden />
          {w.nav.notebook}
        </Button>
      }
    >
      {list.error && <ProblemBox error={list.error} onRetry={() => void list.refetch()} />}
      {list.data && !sessions.length && <p className={css.quiet}>{w.sessions.empty}</p>}
      <ul className={css.rows}>
        {sessions.map((s) => (
          <li key={s.id}>
            <Link href={`/s/${s.id}`}>
              <Name session={s} />
              <span className={css.state}>
                <State state={s.state} />
              </span>
              <span className={css.size}>{s.disk_bytes ? bytes(s.disk_bytes) : ''}</span>
              <time dateTime={s.used_at}>{moment(s.used_at, w.lang)}</time>
            </Link>
            <Actions
              label={w.panels.actions(nameOf(s, w).main)}
              actions={[
                ...(s.state === 'active'
                  ? [
                      {
                        id: 'pause',
                        label: w.panels.pause,
                        icon: <Pause size={15} aria-hidden />,
                        act: () => void changeState(s.id, 'pause').then(again),
                      },
                    ]
                  : []),
                ...(s.state === 'paused'
                  ? [
                      {
                        id: 'resume',
                        label: w.panels.resume,
                        icon: <Play size={15} aria-hidden />,
                        act: () => void changeState(s.id, 'resume').then(again),
                      },
                    ]
                  : []),
                {
                  id: 'remove',
                  label: w.remove,
                  icon: <Trash2 size={15} aria-hidden />,
                  bad: true,
                  act: () => void remove(s),
                },
              ]}
            />
          </li>
        ))}
      </ul>
      {list.hasNextPage && <Button onClick={() => void list.fetchNextPage()}>{w.loadMore}</Button>}
    </Sheet>
  )
}
