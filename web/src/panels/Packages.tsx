import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { client, data } from '../api/client'
import { refusalOf } from '../output'
import { Button, complain, ProblemBox, parts } from '../parts'
import { useWords } from '../words'
import { installPackages } from './install'
import css from './panels.module.css'

export function Packages({ session }: { session: string }) {
  const w = useWords()
  const [filter, setFilter] = useState('')
  const [busy, setBusy] = useState(false)
  const [refused, setRefused] = useState('')
  const list = useQuery({
    queryKey: ['packages', session],
    queryFn: () => data(client.GET('/sessions/{session}/packages', { params: { path: { session } } })),
  })
  const names = Object.entries((list.data?.packages ?? {}) as Record<string, string>).sort(([a], [b]) =>
    a.localeCompare(b),
  )
  const words = filter.trim().toLowerCase()
  return (
    <>
      <form
        className={css.install}
        onSubmit={async (e) => {
          e.preventDefault()
          const form = e.currentTarget
          const wanted = String(new FormData(form).get('names') ?? '')
            .split(/[\s,]+/)
            .filter(Boolean)
          if (!wanted.length) return
          setBusy(true)
          try {
            const why = refusalOf(await installPackages(session, wanted))
            setRefused(why)
            if (!why) form.reset()
          } catch (error) {
            complain(error)
          }
          setBusy(false)
        }}
      >
        <input
          className={parts.field}
          name="names"
          aria-label={w.panels.addLabel}
          placeholder="polars>=1"
          spellCheck={false}
          autoCapitalize="off"
        />
        <Button type="submit" disabled={busy}>
          {busy ? w.panels.adding : w.panels.add}
        </Button>
      </form>
      {refused && (
        <p role="alert" className={css.refused}>
          {refused}
        </p>
      )}
      {list.error && <ProblemBox error={list.error} onRetry={() => void list.refetch()} />}
      {names.length > 12 && (
        <input
          className={parts.field}
          type="search"
          aria-label={w.panels.filter}
          placeholder={w.panels.filter}
          value={filter}
          onChange={(e) => setFilter(e.target.value)}
        />
      )}
      <dl className={css.facts}>
        {list.data && (
          <div>
            <dt>Python</dt>
            <dd>{list.data.python}</dd>
          </div>
        )}
        {names
          .filter(([name]) => name.toLowerCase().includes(words))
          .map(([name, version]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{version}</dd>
            </div>
          ))}
      </dl>
    </>
  )
}
