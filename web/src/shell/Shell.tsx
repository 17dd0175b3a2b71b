import { lazy, Suspense, useEffect, useState } from 'react'
import { Redirect, Route, Switch, useLocation, useRoute } from 'wouter'
import type { Caller } from '../api/client'
import { StartPage } from '../conversation/StartPage'
import { may } from '../pages/admin/rights'
import { Overlays } from '../parts'
import { inText, isMod, usePageKeys } from '../parts/keys'
import { useWords } from '../words'
import { Connection } from './Connection'
import { Fault } from './Fault'
import { useNews } from './news'
import { Palette } from './Palette'
import { prefer, preferences, usePreferences } from './preferences'
import { Shortcuts } from './Shortcuts'
import { Sidebar } from './Sidebar'
import css from './shell.module.css'
import { useTabMark } from './tab'

const loadConversation = () => import('../conversation/ConversationPage')
const ConversationPage = lazy(() => loadConversation().then((m) => ({ default: m.ConversationPage })))
const SessionPage = lazy(() => import('../notebook/SessionPage'))
const Sessions = lazy(() => import('../pages/Sessions'))
const Settings = lazy(() => import('../pages/Settings'))
const Admin = lazy(() => import('../pages/admin/Admin'))
const SearchPage = lazy(() => import('../pages/search/SearchPage'))

const narrow = () => matchMedia('(max-width: 700px)')

/** Leaves the list at the side out: to the last question, or to what the page is about. */
function skip() {
  const to = [...document.querySelectorAll<HTMLElement>('[data-turn]')].at(-1) ?? document.querySelector('main')
  if (!to) return
  to.tabIndex = -1
  to.focus()
}

export function Shell({ who }: { who: Caller }) {
  const w = useWords()
  const p = usePreferences()
  const [location, navigate] = useLocation()
  useTabMark()
  const [inConversation, at] = useRoute('/c/:id')
  useNews(who, inConversation ? at.id : null)
  const [over, setOver] = useState<'palette' | 'shortcuts' | null>(null)

  // biome-ignore lint/correctness/useExhaustiveDependencies: on a phone, going somewhere closes the drawer
  useEffect(() => {
    if (narrow().matches) prefer({ sidebar: false, panels: false })
  }, [location])

  // In a window that becomes narrow the columns would become drawers over the page.
  useEffect(() => {
    const width = narrow()
    const close = () => width.matches && prefer({ sidebar: false, panels: false })
    width.addEventListener('change', close)
    return () => width.removeEventListener('change', close)
  }, [])

  // The next page is most often a conversation, and a table the first that it shows: they are there when they are asked for.
  useEffect(() => {
    const load = () => loadConversation().then(() => import('../output/Grid'))
    const timer = setTimeout(() => void load().catch(() => undefined), 800)
    return () => clearTimeout(timer)
  }, [])

  usePageKeys((e) => {
    if (document.querySelector('dialog[open]')) return
    if (isMod(e) && e.code === 'KeyK') {
      e.preventDefault()
      setOver('palette')
      return
    }
    if (isMod(e) && e.shiftKey && e.code === 'KeyO') {
      e.preventDefault()
      navigate('/')
      return
    }
    if (!preferences().letters || e.metaKey || e.ctrlKey || e.altKey || inText(e.target)) return
    if (e.key === '?' || e.key === '？') setOver('shortcuts')
    else if (e.key === '/') {
      e.preventDefault()
      navigate('/search')
    } else if (e.key === '[') prefer({ sidebar: !preferences().sidebar })
    else if (e.key === ']') prefer({ panels: !preferences().panels })
  })

  return (
    <div className={css.shell} data-sidebar={p.sidebar || undefined} data-panels={p.panels || undefined}>
      <button type="button" className={css.skip} onClick={skip}>
        {inConversation ? w.skip : w.skipMain}
      </button>
      {p.sidebar && (
        <>
          <button
            type="button"
            className={css.shade}
            aria-label={w.nav.close}
            onClick={() => prefer({ sidebar: false })}
          />
          <Sidebar who={who} onPalette={() => setOver('palette')} onShortcuts={() => setOver('shortcuts')} />
        </>
      )}
      <Fault at={location}>
        <Suspense fallback={<main className={css.main} />}>
          <Switch>
            <Route path="/">{may(who, 'conversations:read') ? <StartPage /> : <Redirect to="/admin" replace />}</Route>
            <Route path="/c/:id">{({ id }) => <ConversationPage key={id} id={id} />}</Route>
            <Route path="/s/:id">{({ id }) => <SessionPage key={id} id={id} />}</Route>
            <Route path="/sessions" component={Sessions} />
            <Route path="/settings">
              <Settings who={who} />
            </Route>
            <Route path="/search" component={SearchPage} />
            <Route path="/admin/*?">
              <Admin who={who} />
            </Route>
            <Route path="/usage">
              <Redirect to="/admin/usage" replace />
            </Route>
            <Route path="/keys">
              <Redirect to="/admin/keys" replace />
            </Route>
            <Route>
              <Redirect to="/" replace />
            </Route>
          </Switch>
        </Suspense>
      </Fault>
      <Connection />
      {over === 'palette' && (
        <Palette who={who} onClose={() => setOver(null)} onShortcuts={() => setOver('shortcuts')} />
      )}
      {over === 'shortcuts' && <Shortcuts onClose={() => setOver(null)} />}
      <Overlays />
    </div>
  )
}
