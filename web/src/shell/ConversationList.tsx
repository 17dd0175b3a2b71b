import { useQueries } from '@tanstack/react-query'
import { useVirtualizer } from '@tanstack/react-virtual'
import { GitFork, ListChecks, Pencil, Pin, PinOff, Trash2, X } from 'lucide-react'
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from 'react'
import { Link, useLocation, useRoute } from 'wouter'
import { type Conversation, client, data } from '../api/client'
import { asProblem } from '../api/problem'
import { queries, titleOf, useConversations } from '../api/queries'
import { useWork } from '../events/work'
import { Actions, ask, Button, complain, IconButton, ProblemBox, toast } from '../parts'
import { isComposing } from '../parts/keys'
import { useWords, type Words } from '../words'
import { byDay } from './days'
import { pin, pins, usePins } from './pins'
import css from './sidebar.module.css'

const again = () => queries.invalidateQueries({ queryKey: ['conversations'] })

async function rename(c: Conversation, w: Words) {
  const title = await ask({ title: w.nav.renameTitle, go: w.save, value: c.title })
  if (title === null) return
  try {
    await data(
      client.PATCH('/conversations/{conversation}', {
        params: { path: { conversation: c.id } },
        body: { title: title.trim() },
      }),
    )
    void again()
    void queries.invalidateQueries({ queryKey: ['conversation', c.id] })
  } catch (error) {
    complain(error)
  }
}

/** Deletes conversations, after saying so. It returns those that are gone. */
async function remove(ids: string[], w: Words): Promise<string[]> {
  const title = ids.length === 1 ? w.nav.deleteTitle : w.shell.deleteMany(ids.length)
  if ((await ask({ title, text: w.nav.deleteText, go: w.remove, bad: true })) === null) return []
  const gone: string[] = []
  let failed: unknown = null
  // Four at a time: a browser has six connections to a server for all of its tabs.
  const left = [...ids]
  const work = async () => {
    for (let id = left.pop(); id; id = left.pop())
      try {
        await data(client.DELETE('/conversations/{conversation}', { params: { path: { conversation: id } } }))
        gone.push(id)
      } catch (error) {
        if (asProblem(error).status === 404) gone.push(id)
        else failed = error
      }
  }
  await Promise.all([work(), work(), work(), work()])
  for (const id of gone) if (pins().includes(id)) pin(id, false)
  if (failed) {
    if (ids.length > 1) toast(w.shell.notDeleted(ids.length - gone.length), { bad: true })
    complain(failed)
  } else if (ids.length > 1) toast(w.shell.deletedMany(gone.length))
  await again()
  return gone
}

interface Choice {
  on: boolean
  has: boolean
  toggle: () => void
}

interface ItemProps {
  c: Conversation
  choice: Choice
  pinned: boolean
  /** Whether Tab comes to it: to one of the list. */
  stop: boolean
}

function Item({ c, choice, pinned, stop }: ItemProps) {
  const w = useWords()
  const [here] = useRoute(`/c/${c.id}`)
  const [, navigate] = useLocation()
  const title = titleOf(c, w.nav.untitled)
  const work = useWork(c.id)
  if (choice.on)
    return (
      <label className={css.item}>
        <input type="checkbox" checked={choice.has} onChange={choice.toggle} aria-label={w.shell.selectOne(title)} />
        <span className={css.choice}>{title}</span>
      </label>
    )
  return (
    <div className={css.item} data-here={here || undefined}>
      <Link href={`/c/${c.id}`} tabIndex={stop ? 0 : -1} aria-current={here ? 'page' : undefined} title={title}>
        {c.origin && <GitFork className={css.forked} size={13} aria-label={w.nav.forked} />}
        {title}
      </Link>
      {work && (
        <span
          className={css.work}
          data-work={work}
          role="img"
          aria-label={w.shell.work[work]}
          title={w.shell.work[work]}
        />
      )}
      <Actions
        small
        tabIndex={-1}
        className={css.itemMore ?? ''}
        label={w.nav.actions(title)}
        actions={[
          {
            id: 'pin',
            label: pinned ? w.shell.unpin : w.shell.pin,
            icon: pinned ? <PinOff size={15} aria-hidden /> : <Pin size={15} aria-hidden />,
            act: () => pin(c.id, !pinned),
          },
          { id: 'rename', label: w.rename, icon: <Pencil size={15} aria-hidden />, act: () => void rename(c, w) },
          {
            id: 'select',
            label: w.shell.select,
            icon: <ListChecks size={15} aria-hidden />,
            act: choice.toggle,
          },
          {
            id: 'remove',
            label: w.remove,
            icon: <Trash2 size={15} aria-hidden />,
            bad: true,
            act: () => void remove([c.id], w).then((gone) => gone.length > 0 && here && navigate('/')),
          },
        ]}
      />
    </div>
  )
}

type Row = { key: string; head: string } | { key: string; c: Conversation; pinned: boolean }

/** Pinned conversations, of which the list may not have come so far. */
function usePinned(known: readonly Conversation[]): Conversation[] {
  const ids = usePins()
  const asked = useQueries({
    queries: ids.map((id) => {
      const initial = known.find((c) => c.id === id)
      return {
        queryKey: ['conversation', id],
        queryFn: () => data(client.GET('/conversations/{conversation}', { params: { path: { conversation: id } } })),
        enabled: !initial,
        staleTime: 60_000,
        retry: false,
      }
    }),
  })
  return ids.flatMap((id, i) => known.find((c) => c.id === id) ?? asked[i]?.data ?? [])
}

/** The conversations, by day. Only what is in sight is in the document, and more comes by scrolling. */
export function ConversationList() {
  const w = useWords()
  const [here, params] = useRoute('/c/:id')
  const [, navigate] = useLocation()
  const list = useConversations()
  const box = useRef<HTMLDivElement>(null)
  const [chosen, setChosen] = useState<ReadonlySet<string> | null>(null)
  const known = useMemo(() => list.data?.pages.flatMap((p) => p.items) ?? [], [list.data])
  const pinned = usePinned(known)
  const rows = useMemo(() => {
    const out: Row[] = []
    const top = new Set(pinned.map((c) => c.id))
    if (pinned.length) out.push({ key: 'pinned', head: w.shell.pinned })
    for (const c of pinned) out.push({ key: c.id, c, pinned: true })
    const rest = known.filter((c) => !top.has(c.id))
    for (const d of byDay(rest, new Date())) {
      out.push({ key: `${d.day}-${d.items[0]?.id}`, head: w.nav[d.day] })
      for (const c of d.items) out.push({ key: c.id, c, pinned: false })
    }
    return out
  }, [known, pinned, w])
  const coarse = matchMedia('(hover: none)').matches
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: (i) => (rows[i] && 'head' in rows[i] ? 34 : coarse ? 44 : 34),
    getItemKey: (i) => rows[i]?.key ?? i,
    overscan: 12,
  })
  const items = virtual.getVirtualItems()
  const end = items.at(-1)?.index ?? 0
  // One stop for Tab: where one was last, else the conversation that is shown, as far as they are in the document.
  const [last, setLast] = useState<string | null>(null)
  const there = (id: string | null | undefined) => items.some((i) => i.key === id)
  const firstHere = items.find((i) => 'c' in (rows[i.index] ?? {}))?.key
  const stop = [last, here ? params.id : null].find(there) ?? firstHere
  const onKey = (e: KeyboardEvent<HTMLElement>) => {
    const li = (e.target as HTMLElement).closest<HTMLElement>('li[data-index]')
    if (!li || chosen || isComposing(e) || (e.target as HTMLElement).closest('[role=menu]')) return
    const across = { ArrowRight: 'button', ArrowLeft: 'a' }[e.key]
    if (across) {
      e.preventDefault()
      li.querySelector<HTMLElement>(across)?.focus()
      return
    }
    if (e.altKey || e.ctrlKey || e.metaKey || (e.target as HTMLElement).matches('button')) return
    const at = Number(li.dataset.index)
    const all = [...rows.keys()].filter((i) => 'c' in (rows[i] ?? {}))
    const to = {
      ArrowDown: all.find((i) => i > at),
      ArrowUp: all.findLast((i) => i < at),
      Home: all[0],
      End: all.at(-1),
    }[e.key]
    if (to === undefined) return
    e.preventDefault()
    virtual.scrollToIndex(to)
    const focus = (times: number) => {
      const link = box.current?.querySelector<HTMLElement>(`li[data-index="${to}"] a`)
      if (link) link.focus()
      else if (times > 0) requestAnimationFrame(() => focus(times - 1))
    }
    focus(10)
  }
  useEffect(() => {
    if (end >= rows.length - 8 && list.hasNextPage && !list.isFetchingNextPage && !list.isFetchNextPageError)
      void list.fetchNextPage()
  }, [end, rows.length, list])
  useEffect(() => {
    const begin = () => setChosen(new Set())
    window.addEventListener('cove-select', begin)
    return () => window.removeEventListener('cove-select', begin)
  }, [])
  const toggle = (id: string) => {
    const next = new Set(chosen)
    if (!next.delete(id)) next.add(id)
    setChosen(next)
  }
  const removeChosen = async () => {
    const gone = await remove([...(chosen ?? [])], w)
    if (!gone.length) return
    setChosen(null)
    if (here && gone.includes(params.id)) navigate('/')
  }
  return (
    <>
      {chosen && (
        <div
          className={css.choosing}
          role="toolbar"
          aria-label={w.shell.select}
          onKeyDown={(e) => e.key === 'Escape' && setChosen(null)}
        >
          <span role="status">{w.shell.selected(chosen.size)}</span>
          <IconButton
            small
            label={w.shell.selectAll}
            onClick={() => setChosen(new Set(rows.flatMap((r) => ('c' in r ? [r.c.id] : []))))}
          >
            <ListChecks size={16} aria-hidden />
          </IconButton>
          <IconButton
            small
            label={w.shell.deleteMany(chosen.size)}
            disabled={!chosen.size}
            onClick={() => void removeChosen()}
          >
            <Trash2 size={16} aria-hidden />
          </IconButton>
          <IconButton small label={w.cancel} onClick={() => setChosen(null)}>
            <X size={16} aria-hidden />
          </IconButton>
        </div>
      )}
      <div className={css.list} ref={box}>
        {list.error && <ProblemBox error={list.error} onRetry={() => void list.refetch()} />}
        {list.data && !rows.length && <p className={css.empty}>{w.nav.empty}</p>}
        {rows.length > 0 && (
          <ul
            className={css.rows}
            style={{ height: virtual.getTotalSize() }}
            aria-busy={list.isFetchingNextPage}
            onKeyDown={onKey}
            onFocus={(e) => {
              const index = (e.target as HTMLElement).closest<HTMLElement>('li[data-index]')?.dataset.index
              const row = rows[Number(index)]
              if (row) setLast(row.key)
            }}
          >
            {items.map((item) => {
              const row = rows[item.index]
              if (!row) return null
              return (
                <li
                  key={item.key}
                  ref={virtual.measureElement}
                  data-index={item.index}
                  style={{ transform: `translateY(${item.start}px)` }}
                >
                  {'head' in row ? (
                    <h2>{row.head}</h2>
                  ) : (
                    <Item
                      stop={item.key === stop}
                      c={row.c}
                      pinned={row.pinned}
                      choice={{ on: !!chosen, has: chosen?.has(row.c.id) ?? false, toggle: () => toggle(row.c.id) }}
                    />
                  )}
                </li>
              )
            })}
          </ul>
        )}
        {list.isFetchNextPageError && (
          <Button look="plain" onClick={() => void list.fetchNextPage()}>
            {w.retry}
          </Button>
        )}
      </div>
    </>
  )
}
