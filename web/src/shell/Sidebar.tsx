import {
  ChartNoAxesColumn,
  Keyboard,
  KeyRound,
  ListChecks,
  PanelLeft,
  Search,
  Server,
  Settings,
  SlidersHorizontal,
  SquarePen,
  SquareTerminal,
} from 'lucide-react'
import type { CSSProperties } from 'react'
import { Link, useLocation } from 'wouter'
import { type Caller, client, data, once } from '../api/client'
import { may, mayOpen } from '../pages/admin/rights'
import { Actions, complain, IconButton, parts } from '../parts'
import { modKey, modName } from '../parts/keys'
import { useWords } from '../words'
import { ConversationList } from './ConversationList'
import { prefer, usePreferences } from './preferences'
import { Resizer } from './Resizer'
import css from './sidebar.module.css'

export const sideWidth = { least: 208, most: 480, usual: 264 }

export function Sidebar({
  who,
  onPalette,
  onShortcuts,
}: {
  who: Caller
  onPalette: () => void
  onShortcuts: () => void
}) {
  const w = useWords()
  const [, navigate] = useLocation()
  const p = usePreferences()
  const notebook = async () => {
    try {
      const made = await data(client.POST('/sessions', { params: { header: once() }, body: {} }))
      navigate(`/s/${made.id}`)
    } catch (error) {
      complain(error)
    }
  }
  return (
    <nav
      className={css.sidebar}
      aria-label={w.nav.conversations}
      style={{ '--side-width': `${p.sideWidth}px` } as CSSProperties}
    >
      <div className={css.top}>
        <Link href="/" className={css.mark}>
          cove
        </Link>
        <IconButton
          label={w.nav.close}
          aria-keyshortcuts={p.letters ? '[' : undefined}
          onClick={() => prefer({ sidebar: false })}
        >
          <PanelLeft size={18} aria-hidden />
        </IconButton>
      </div>
      <div className={css.links}>
        <Link href="/" className={css.link} aria-keyshortcuts={`${modKey}+Shift+O`}>
          <SquarePen size={16} aria-hidden />
          {w.nav.new}
        </Link>
        <button type="button" className={css.link} onClick={() => void notebook()}>
          <SquareTerminal size={16} aria-hidden />
          {w.nav.notebook}
        </button>
        {may(who, 'conversations:read') && (
          <div className={css.row}>
            <Link href="/search" className={css.link} aria-keyshortcuts={p.letters ? '/' : undefined}>
              <Search size={16} aria-hidden />
              {w.nav.search}
            </Link>
            <button
              type="button"
              className={css.hint}
              title={w.nav.palette}
              aria-keyshortcuts={`${modKey}+K`}
              onClick={onPalette}
            >
              <span className={parts.hidden}>{w.nav.palette}</span> <kbd>{modName} K</kbd>
            </button>
          </div>
        )}
      </div>
      {may(who, 'conversations:read') ? <ConversationList /> : <div className={css.list} />}
      <div className={css.foot}>
        {may(who, 'sessions:read') && (
          <Link href="/sessions" className={css.link}>
            <Server size={16} aria-hidden />
            {w.nav.sessions}
          </Link>
        )}
        <div className={css.row}>
          <Link href="/settings" className={css.link}>
            <Settings size={16} aria-hidden />
            {w.nav.settings}
          </Link>
          <Actions
            label={w.more}
            actions={[
              {
                id: 'admin',
                label: w.admin.title,
                icon: <SlidersHorizontal size={15} aria-hidden />,
                act: () => navigate('/admin'),
              },
              ...(mayOpen(who, 'usage')
                ? [
                    {
                      id: 'usage',
                      label: w.nav.usage,
                      icon: <ChartNoAxesColumn size={15} aria-hidden />,
                      act: () => navigate('/admin/usage'),
                    },
                  ]
                : []),
              ...(mayOpen(who, 'keys')
                ? [
                    {
                      id: 'keys',
                      label: w.nav.keys,
                      icon: <KeyRound size={15} aria-hidden />,
                      act: () => navigate('/admin/keys'),
                    },
                  ]
                : []),
              ...(may(who, 'conversations:read')
                ? [
                    {
                      id: 'select',
                      label: w.shell.select,
                      icon: <ListChecks size={15} aria-hidden />,
                      act: () => window.dispatchEvent(new Event('cove-select')),
                    },
                  ]
                : []),
              { id: 'shortcuts', label: w.nav.shortcuts, icon: <Keyboard size={15} aria-hidden />, act: onShortcuts },
            ]}
          />
        </div>
      </div>
      <Resizer
        label={w.shell.resizeSide}
        value={p.sideWidth}
        {...sideWidth}
        side="left"
        onChange={(width) => prefer({ sideWidth: width })}
      />
    </nav>
  )
}
