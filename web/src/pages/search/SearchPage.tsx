import { useInfiniteQuery, useQueries } from '@tanstack/react-query'
import { Search as SearchIcon } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { Link, useSearchParams } from 'wouter'
import { type Conversation, client, data, type Schemas } from '../../api/client'
import { Problem } from '../../api/problem'
import { conversationQuery, queries, titleOf, useConversation } from '../../api/queries'
import { Button, ProblemBox, parts } from '../../parts'
import { moment } from '../../parts/format'
import { arrive } from '../../shell/arrive'
import { Sheet } from '../../shell/Page'
import { useWords } from '../../words'
import { type Group, grouped, withOrigins } from './groups'
import { marked } from './marks'
import css from './search.module.css'

type Found = Schemas['Found']

const pause = 300 // milliseconds without a key before the server is asked

const placeOf = (f: Found) =>
  f.conversation ? `/c/${f.conversation}${f.turn ? `?turn=${f.turn}` : ''}` : `/s/${f.session ?? ''}`

function Title({ conversation }: { conversation: string }) {
  const w = useWords()
  const { data: c } = useConversation(conversation)
  return <bdi>{c ? titleOf(c, w.nav.untitled) : '…'}</bdi>
}

const originOf = (id: string) =>
  queries.getQueryData<Conversation>(conversationQuery(id).queryKey)?.origin?.conversation

/** Has the conversations of places, and what those are forks of, asked for: originOf knows them then. */
function useOrigins(found: readonly Found[]) {
  const ids = withOrigins([...new Set(found.flatMap((f) => f.conversation ?? []))], originOf)
  useQueries({ queries: ids.map(conversationQuery) })
}

/** A conversation where something was found: its newest place, and the others when they are asked for. */
function Hits({ group, query }: { group: Group; query: string }) {
  const w = useWords()
  const [all, setAll] = useState(false)
  return (
    <li>
      <Hit found={group.first} query={query} titled />
      {all &&
        group.more.map((f) => (
          <Hit
            key={`${f.turn}${f.execution}${f.field}`}
            found={f}
            query={query}
            titled={f.conversation !== group.first.conversation}
          />
        ))}
      {(group.more.length > 0 || group.copies.length > 0) && (
        <p className={css.more}>
          {group.more.length > 0 && (
            <Button look="plain" aria-expanded={all} onClick={() => setAll(!all)}>
              {all ? w.find.less : w.find.more(group.more.length)}
            </Button>
          )}
          {group.copies.length > 0 && (
            <span className={css.copies}>
              {w.find.copies(group.copies.length)}
              {group.copies.map((f) => (
                <Link key={f.conversation} href={placeOf(f)} onClick={() => f.turn && arrive(f.turn)}>
                  <Title conversation={f.conversation ?? ''} />
                </Link>
              ))}
            </span>
          )}
        </p>
      )}
    </li>
  )
}

function Hit({ found: f, query, titled = false }: { found: Found; query: string; titled?: boolean }) {
  const w = useWords()
  const code = f.field === 'code' || f.field === 'output'
  return (
    <Link href={placeOf(f)} className={css.hit} onClick={() => f.turn && f.conversation && arrive(f.turn)}>
      <span className={css.head}>
        {titled && <strong>{f.conversation ? <Title conversation={f.conversation} /> : w.find.session}</strong>}
        <span className={css.field}>{w.nav.fields[f.field] ?? f.field}</span>
        <time dateTime={f.at}>{moment(f.at, w.lang)}</time>
      </span>
      <span className={code ? css.code : css.text} dir="auto">
        {marked(f.snippet, query).map((p, i) =>
          // biome-ignore lint/suspicious/noArrayIndexKey: parts of a text have no other name
          p.mark ? <mark key={i}>{p.text}</mark> : p.text,
        )}
      </span>
    </Link>
  )
}

/** Full-text search over the history. Its question is in the address. */
export default function SearchPage() {
  const w = useWords()
  const [params, setParams] = useSearchParams()
  const query = (params.get('q') ?? '').trim()
  const field = useRef<HTMLInputElement>(null)
  const composing = useRef(false)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const [typed, setTyped] = useState(!!query)
  const list = useInfiniteQuery({
    queryKey: ['find', query],
    enabled: !!query,
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) =>
      data(
        client.GET('/search', {
          params: { query: { q: query, limit: 20, ...(pageParam ? { after: pageParam } : {}) } },
          signal,
        }),
      ),
    getNextPageParam: (page) => page.next,
    // A search that is too broad stays so.
    retry: (times, error) =>
      times < 2 && error instanceof Problem && error.passing && error.code !== 'search_too_broad',
  })
  const found = list.data?.pages.flatMap((p) => p.items) ?? []
  useOrigins(found)

  const look = (now: boolean) => {
    clearTimeout(timer.current)
    const text = field.current?.value.trim() ?? ''
    setTyped(!!text)
    timer.current = setTimeout(() => setParams(text ? { q: text } : {}, { replace: true }), now ? 0 : pause)
  }
  useEffect(() => () => clearTimeout(timer.current), [])
  // The address changes by Back and by links, too.
  useEffect(() => {
    if (field.current && !composing.current && field.current !== document.activeElement) field.current.value = query
  }, [query])
  useEffect(() => field.current?.focus(), [])

  return (
    <Sheet title={w.find.title}>
      {/* biome-ignore lint/a11y/useSemanticElements: the element is not known everywhere yet */}
      <form
        role="search"
        className={css.form}
        onSubmit={(e) => {
          e.preventDefault()
          if (!composing.current) look(true)
        }}
      >
        <SearchIcon size={18} aria-hidden />
        <input
          ref={field}
          type="search"
          className={parts.field}
          defaultValue={query}
          maxLength={500}
          aria-label={w.find.label}
          aria-describedby="find-hint"
          placeholder={w.nav.searchHint}
          autoComplete="off"
          spellCheck={false}
          onCompositionStart={() => {
            composing.current = true
            clearTimeout(timer.current)
          }}
          onCompositionEnd={() => {
            composing.current = false
            look(false)
          }}
          onInput={() => {
            if (!composing.current) look(false)
          }}
        />
      </form>
      <p id="find-hint" className={css.hint}>
        {w.find.hint}
      </p>
      {list.error && <ProblemBox error={list.error} onRetry={() => void list.refetch()} />}
      <p role="status" className={css.hint}>
        {query && list.isPending ? w.loading : found.length ? w.find.found(found.length, !!list.hasNextPage) : ''}
      </p>
      {!query && !typed && <p className={css.quiet}>{w.find.empty}</p>}
      {query && list.data && !found.length && (
        <div className={css.quiet}>
          <p>{w.find.none(query)}</p>
          <p>{w.find.noneHint}</p>
        </div>
      )}
      {found.length > 0 && (
        <ul className={css.hits} aria-busy={list.isFetching}>
          {grouped(found, originOf).map((g) => (
            <Hits key={g.id} group={g} query={query} />
          ))}
        </ul>
      )}
      {list.hasNextPage && (
        <Button disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          {w.loadMore}
        </Button>
      )}
    </Sheet>
  )
}
