import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { api } from '../api/base'
import { type Schemas, send } from '../api/client'
import { asProblem, Problem } from '../api/problem'
import { Figures } from '../output'
import { Button, Overlays, ProblemBox, Segments } from '../parts'
import { day, moment, plainName } from '../parts/format'
import { prefer, usePreferences } from '../shell/preferences'
import { nameTab } from '../shell/tab'
import { languageOf, languages, useWords } from '../words'
import { SharedTurn } from './SharedTurn'
import css from './share.module.css'

type Shared = Schemas['Shared']

const atOnce = 40

/** What a link shows, checked as far as the page relies on it. */
export function readShared(said: unknown): Shared {
  const doc = said as Partial<Shared> | null
  if (!doc || !Array.isArray(doc.turns)) throw new Problem(0, { code: 'fault', detail: 'The answer cannot be read.' })
  return {
    title: doc.title ?? '',
    shows_code: doc.shows_code === true,
    created_at: doc.created_at ?? '',
    ...(doc.expires_at ? { expires_at: doc.expires_at } : {}),
    files: doc.files ?? [],
    turns: doc.turns.map((t) => ({ ...t, events: t.events ?? [], files: t.files ?? [] })),
  }
}

/** A conversation as a link shows it: to anybody, without signing in. It asks the server for this document and for nothing else. */
export default function SharedPage({ code }: { code: string }) {
  const w = useWords()
  const s = w.shared
  const [shown, setShown] = useState(atOnce)
  const { data, error, isFetching, refetch } = useQuery({
    queryKey: ['shared', code],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async () => readShared(await (await send(api(`shared/${encodeURIComponent(code)}`))).json()),
  })
  const title = data?.title.trim() || (data ? w.nav.untitled : '')
  useEffect(() => {
    nameTab(title ? `${title} · cove` : 'cove')
  }, [title])
  return (
    <div className={css.page}>
      <Bar />
      <main className={css.column}>
        {!data && !error && <p className={css.quiet}>{w.loading}</p>}
        {error && !data && <Gone problem={asProblem(error)} onRetry={() => void refetch()} busy={isFetching} />}
        {data && (
          <>
            <header className={css.head}>
              <h1 dir="auto">{title}</h1>
              <p>
                {[
                  data.created_at ? s.on(day(data.created_at, w.lang)) : '',
                  data.expires_at ? s.until(moment(data.expires_at, w.lang)) : '',
                ]
                  .filter(Boolean)
                  .join(' · ')}
              </p>
              {!data.shows_code && <p>{s.noCode}</p>}
              {data.files.length > 0 && (
                <p>
                  {s.files}: <bdi>{data.files.map(plainName).join(', ')}</bdi>
                </p>
              )}
            </header>
            <Figures>
              {data.turns.slice(0, shown).map((t) => (
                <SharedTurn key={t.id} turn={t} />
              ))}
            </Figures>
            {data.turns.length > shown && (
              <Button onClick={() => setShown(shown + atOnce)}>
                {w.loadMore} ({data.turns.length - shown})
              </Button>
            )}
          </>
        )}
      </main>
      <footer className={css.foot}>{s.by}</footer>
      <Overlays />
    </div>
  )
}

function Bar() {
  const w = useWords()
  const p = usePreferences()
  return (
    <div className={css.bar}>
      <Segments
        label={w.language}
        value={languageOf(p.language)}
        options={languages}
        onChange={(language) => prefer({ language })}
      />
      <Segments
        label={w.theme.label}
        value={p.theme}
        options={(['system', 'light', 'dark'] as const).map((id) => ({ id, name: w.theme[id] }))}
        onChange={(theme) => prefer({ theme })}
      />
    </div>
  )
}

function Gone({ problem, onRetry, busy }: { problem: Problem; onRetry: () => void; busy: boolean }) {
  const w = useWords()
  const s = w.shared
  if (problem.code !== 'share_not_found' && problem.code !== 'sharing_off')
    return busy ? <p className={css.quiet}>{w.loading}</p> : <ProblemBox error={problem} onRetry={onRetry} />
  return (
    <div className={css.head} role="alert">
      <h1>{s.gone}</h1>
      <p>{problem.code === 'sharing_off' ? s.off : s.goneText}</p>
    </div>
  )
}
