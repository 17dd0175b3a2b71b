import { useQuery } from '@tanstack/react-query'
import { useDeferredValue, useId, useMemo, useState } from 'react'
import { useLocation } from 'wouter'
import { type Caller, client, data, keepDevKey, once, post } from '../api/client'
import { titleOf, useConversations } from '../api/queries'
import { may, mayOpen, sections } from '../pages/admin/rights'
import { complain, Dialog } from '../parts'
import { isComposing } from '../parts/keys'
import { useWords, type Words } from '../words'
import { arrive } from './arrive'
import css from './palette.module.css'
import { type Preferences, prefer, preferences, usePreferences } from './preferences'

interface Row {
  id: string
  text: string
  /** Whether somebody wrote the text. */
  theirs?: boolean
  note?: string
  act: () => void
}

interface Here {
  who: Caller
  w: Words
  p: Preferences
  go: (to: string) => () => void
  navigate: (to: string) => void
  onShortcuts: () => void
}

/** Every page and every action that is not about one thing. */
function commandsOf({ who, w, p, go, navigate, onShortcuts }: Here): Row[] {
  const notebook = () =>
    void data(client.POST('/sessions', { params: { header: once() }, body: {} }))
      .then((s) => navigate(`/s/${s.id}`))
      .catch(complain)
  const leave = async () => {
    await post('sign-out').catch(() => undefined)
    keepDevKey(null)
    location.reload()
  }
  const reads = may(who, 'conversations:read')
  return [
    ...(reads ? [{ id: 'new', text: w.nav.new, act: go('/') }] : []),
    ...(may(who, 'sessions:write') ? [{ id: 'notebook', text: w.nav.notebook, act: notebook }] : []),
    ...(reads ? [{ id: 'search', text: w.find.label, act: go('/search') }] : []),
    ...(may(who, 'sessions:read') ? [{ id: 'sessions', text: w.nav.sessions, act: go('/sessions') }] : []),
    { id: 'settings', text: w.nav.settings, act: go('/settings') },
    ...sections
      .filter((s) => mayOpen(who, s))
      .map((s) => ({ id: `admin-${s}`, text: w.admin.sections[s], note: w.admin.title, act: go(`/admin/${s}`) })),
    { id: 'shortcuts', text: w.nav.shortcuts, act: onShortcuts },
    ...(reads
      ? [
          {
            id: 'select',
            text: w.shell.select,
            act: () => {
              prefer({ sidebar: true })
              setTimeout(() => window.dispatchEvent(new Event('cove-select')))
            },
          },
        ]
      : []),
    { id: 'side', text: w.shell.side, act: () => prefer({ sidebar: !preferences().sidebar }) },
    { id: 'panels', text: w.shell.side2, act: () => prefer({ panels: !preferences().panels }) },
    ...(['system', 'light', 'dark'] as const)
      .filter((t) => t !== p.theme)
      .map((t) => ({ id: t, text: `${w.theme.label}: ${w.theme[t]}`, act: () => prefer({ theme: t }) })),
    {
      id: 'contrast',
      text: `${w.shell.contrast}: ${p.contrast === 'high' ? w.shell.usual : w.shell.high}`,
      act: () => prefer({ contrast: p.contrast === 'high' ? 'system' : 'high' }),
    },
    {
      id: 'lang',
      text: w.lang === 'en' ? '中文' : 'English',
      note: w.language,
      act: () => prefer({ language: w.lang === 'en' ? 'zh' : 'en' }),
    },
    { id: 'out', text: w.shell.signOut, act: () => void leave() },
  ]
}

/** Commands, conversations, and what the history has, in one list. */
export function Palette({ who, onClose, onShortcuts }: { who: Caller; onClose: () => void; onShortcuts: () => void }) {
  const w = useWords()
  const id = useId()
  const p = usePreferences()
  const [, navigate] = useLocation()
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  // What is being composed is no question yet.
  const [asked, setAsked] = useState('')
  const wanted = useDeferredValue(asked.trim())
  const conversations = useConversations().data
  const found = useQuery({
    queryKey: ['palette', wanted],
    enabled: wanted.length > (/\p{Script=Han}/u.test(wanted) ? 0 : 1) && may(who, 'conversations:read'),
    retry: false,
    placeholderData: (before) => before,
    queryFn: async () => (await data(client.GET('/search', { params: { query: { q: wanted, limit: 12 } } }))).items,
  })
  const rows = useMemo(() => {
    const go = (to: string) => () => navigate(to)
    const commands = commandsOf({ who, w, p, go, navigate, onShortcuts })
    const words = text.trim().toLowerCase()
    const has = (r: Row) => !words || r.text.toLowerCase().includes(words)
    const known: Row[] = (conversations?.pages.flatMap((c) => c.items) ?? []).map((c) => ({
      id: c.id,
      text: titleOf(c, w.nav.untitled),
      theirs: true,
      note: w.view.conversation,
      act: go(`/c/${c.id}`),
    }))
    const hits: Row[] = words
      ? (found.data ?? []).map((f, i) => ({
          id: `hit${i}`,
          text: f.snippet.replace(/\s+/g, ' '),
          theirs: true,
          note: w.nav.fields[f.field] ?? f.field,
          act: () => {
            if (f.conversation && f.turn) arrive(f.turn)
            go(f.conversation ? `/c/${f.conversation}${f.turn ? `?turn=${f.turn}` : ''}` : `/s/${f.session ?? ''}`)()
          },
        }))
      : []
    const all: Row[] = words
      ? [{ id: 'all', text: w.find.all, note: w.find.title, act: go(`/search?q=${encodeURIComponent(text.trim())}`) }]
      : []
    return [...commands.filter(has), ...known.filter(has).slice(0, 8), ...hits, ...all]
  }, [w, p, who, text, conversations, found.data, navigate, onShortcuts])
  const chosen = Math.min(at, Math.max(0, rows.length - 1))
  const take = (row: Row | undefined) => {
    if (!row) return
    onClose()
    row.act()
  }
  return (
    <Dialog title={w.nav.palette} onClose={onClose} className={css.palette}>
      <input
        className={css.input}
        role="combobox"
        aria-expanded
        aria-controls={`${id}-list`}
        aria-activedescendant={rows[chosen] ? `${id}-${chosen}` : undefined}
        aria-label={w.nav.search}
        placeholder={w.nav.searchHint}
        value={text}
        onChange={(e) => {
          setText(e.target.value)
          setAt(0)
          if (!(e.nativeEvent as InputEvent).isComposing) setAsked(e.target.value)
        }}
        onCompositionEnd={(e) => setAsked(e.currentTarget.value)}
        onKeyDown={(e) => {
          if (isComposing(e)) return
          if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
            e.preventDefault()
            const next = (chosen + (e.key === 'ArrowDown' ? 1 : -1) + rows.length) % Math.max(1, rows.length)
            setAt(next)
            document.getElementById(`${id}-${next}`)?.scrollIntoView({ block: 'nearest' })
          } else if (e.key === 'Enter') {
            e.preventDefault()
            take(rows[chosen])
          }
        }}
        autoFocus
      />
      <div id={`${id}-list`} role="listbox" aria-label={w.nav.palette} className={css.list} tabIndex={-1}>
        {rows.map((r, i) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field above has the keys
          <div
            key={r.id}
            id={`${id}-${i}`}
            role="option"
            aria-selected={i === chosen}
            tabIndex={-1}
            className={css.row}
            onClick={() => take(r)}
            onPointerMove={() => setAt(i)}
          >
            {r.theirs ? <bdi>{r.text}</bdi> : <span>{r.text}</span>}
            {r.note && <small>{r.note}</small>}
          </div>
        ))}
        {!rows.length && <p className={css.none}>{found.isFetching ? w.loading : w.nav.noHits}</p>}
      </div>
    </Dialog>
  )
}
