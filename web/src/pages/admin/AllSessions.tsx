import { useInfiniteQuery } from '@tanstack/react-query'
import { Pause, Play, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { Link } from 'wouter'
import { type Caller, client, data, type Session } from '../../api/client'
import { queries } from '../../api/queries'
import { changeState, State } from '../../panels/SessionPanel'
import { Actions, ask, Button, complain, ProblemBox } from '../../parts'
import { bytes, moment } from '../../parts/format'
import { useWords } from '../../words'
import { nameOf } from '../sessionName'
import css from './admin.module.css'
import { AdminSheet } from './Layout'
import { useNames } from './names'
import { may } from './rights'

const states = ['active', 'paused', 'lost'] as const
const again = () => queries.invalidateQueries({ queryKey: ['sessions'] })

function More({ session: s }: { session: Session }) {
  const w = useWords()
  const remove = async () => {
    const yes = await ask({
      title: w.sessions.deleteTitle,
      text: w.admin.sessions.deleteText(nameOf(s, w).main),
      go: w.remove,
      bad: true,
    })
    if (yes === null) return
    try {
      await data(client.DELETE('/sessions/{session}', { params: { path: { session: s.id } } }))
    } catch (error) {
      complain(error)
    }
    await again()
  }
  const change = (to: 'pause' | 'resume') => () => void changeState(s.id, to).then(again)
  const pause = {
    id: 'pause',
    label: w.panels.pause,
    icon: <Pause size={15} aria-hidden />,
    act: change('pause'),
  }
  const resume = {
    id: 'resume',
    label: w.panels.resume,
    icon: <Play size={15} aria-hidden />,
    act: change('resume'),
  }
  return (
    <Actions
      label={w.panels.actions(nameOf(s, w).main)}
      actions={[
        ...(s.state === 'active' ? [pause] : s.state === 'paused' ? [resume] : []),
        {
          id: 'remove',
          label: w.remove,
          icon: <Trash2 size={15} aria-hidden />,
          bad: true,
          act: () => void remove(),
        },
      ]}
    />
  )
}

export function AllSessions({ who }: { who: Caller }) {
  const w = useWords()
  const t = w.admin.sessions
  const userOf = useNames(who)
  const [state, setState] = useState<'' | (typeof states)[number]>('')
  const list = useInfiniteQuery({
    queryKey: ['sessions', 'all', state],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam }) =>
      data(
        client.GET('/sessions', {
          params: {
            query: {
              limit: 50,
              conversations: true,
              ...(state ? { state } : {}),
              ...(pageParam ? { after: pageParam } : {}),
            },
          },
        }),
      ),
    getNextPageParam: (page) => page.next,
  })
  const rows = list.data?.pages.flatMap((p) => p.items).filter((s) => s.state !== 'deleted') ?? []
  return (
    <AdminSheet
      who={who}
      section="sessions"
      title={w.admin.sections.sessions}
      text={t.text}
      actions={
        <select
          className={css.select}
          aria-label={t.state}
          value={state}
          onChange={(e) => setState(e.target.value as typeof state)}
        >
          <option value="">{t.any}</option>
          {states.map((s) => (
            <option key={s} value={s}>
              {w.panels.states[s]}
            </option>
          ))}
        </select>
      }
    >
      {list.error && <ProblemBox error={list.error} onRetry={() => void list.refetch()} />}
      {list.isPending && <p className={css.quiet}>{w.loading}</p>}
      {list.data && !rows.length && <p className={css.quiet}>{w.sessions.empty}</p>}
      {rows.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be reached by keys
        <section className={css.box} aria-label={t.text} tabIndex={0}>
          <table className={css.table}>
            <thead>
              <tr>
                <th scope="col">{w.sessions.session}</th>
                <th scope="col">{t.state}</th>
                <th scope="col">{t.owner}</th>
                <th scope="col" className={css.number}>
                  {t.memory}
                </th>
                <th scope="col" className={css.number}>
                  {t.disk}
                </th>
                <th scope="col">{t.used}</th>
                <td />
              </tr>
            </thead>
            <tbody>
              {rows.map((s) => (
                <tr key={s.id}>
                  <th scope="row" className={css.name}>
                    <Link href={`/s/${s.id}`} title={s.id}>
                      <bdi>{nameOf(s, w).main}</bdi>
                    </Link>
                    {nameOf(s, w).files && (
                      <small className={css.files}>
                        <bdi>{nameOf(s, w).files}</bdi>
                      </small>
                    )}
                  </th>
                  <td className={css.nowrap}>
                    <State state={s.state} />
                  </td>
                  <td>
                    <bdi>{s.user === who.user ? w.admin.you : userOf(s.user)}</bdi>
                  </td>
                  <td className={css.number} title={w.panels.upTo(bytes(s.memory_bytes))}>
                    {s.memory_used_bytes ? bytes(s.memory_used_bytes) : '—'}
                  </td>
                  <td className={css.number}>{s.disk_bytes ? bytes(s.disk_bytes) : '—'}</td>
                  <td className={css.nowrap}>{moment(s.used_at, w.lang)}</td>
                  <td className={css.act}>{may(who, 'sessions:write') && <More session={s} />}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
      {list.hasNextPage && (
        <div className={css.after}>
          <Button disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
            {w.loadMore}
          </Button>
        </div>
      )}
    </AdminSheet>
  )
}
