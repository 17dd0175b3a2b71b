import { PanelLeft, PanelRight } from 'lucide-react'
import { type CSSProperties, type ReactNode, useEffect } from 'react'
import { IconButton } from '../parts'
import { useWords } from '../words'
import { prefer, usePreferences } from './preferences'
import { Resizer } from './Resizer'
import css from './shell.module.css'
import { nameTab } from './tab'

const panelsWidth = { least: 260, most: 720, usual: 340 }

/** A page of the app: its bar, its content, and at the side its panels. */
export function Page({
  title,
  tab,
  bare = false,
  actions,
  panels,
  children,
}: {
  title: string
  /** What the browser's tab says, where that is more than the title. */
  tab?: string | undefined
  /** The title is in the content. */
  bare?: boolean
  actions?: ReactNode
  panels?: ReactNode
  children: ReactNode
}) {
  const w = useWords()
  const p = usePreferences()
  useEffect(() => {
    nameTab(title ? `${tab ?? title} · cove` : 'cove')
  }, [title, tab])
  return (
    <>
      <main className={css.main}>
        <header className={css.bar}>
          <IconButton
            label={w.nav.open}
            aria-expanded={p.sidebar}
            aria-keyshortcuts={p.letters ? '[' : undefined}
            className={p.sidebar ? css.onPhone : ''}
            onClick={() => prefer({ sidebar: true })}
            data-opener
          >
            <PanelLeft size={18} aria-hidden />
          </IconButton>
          {bare ? (
            <span className={css.title} />
          ) : (
            <h1 className={css.title} title={title}>
              {title}
            </h1>
          )}
          {actions}
          {panels && (
            <IconButton
              label={w.nav.panels}
              aria-pressed={p.panels}
              aria-keyshortcuts={p.letters ? ']' : undefined}
              onClick={() => prefer({ panels: !p.panels })}
            >
              <PanelRight size={18} aria-hidden />
            </IconButton>
          )}
        </header>
        {children}
      </main>
      {panels && p.panels && (
        <aside
          className={css.panels}
          aria-label={w.nav.panels}
          style={{ '--panels-width': `${p.panelsWidth}px` } as CSSProperties}
        >
          <Resizer
            label={w.shell.resizePanels}
            value={p.panelsWidth}
            {...panelsWidth}
            side="right"
            onChange={(width) => prefer({ panelsWidth: width })}
          />
          {panels}
        </aside>
      )}
    </>
  )
}

/** A page of text, tables and forms. */
export function Sheet({
  title,
  text,
  actions,
  children,
}: {
  title: string
  text?: string
  actions?: ReactNode
  children: ReactNode
}) {
  return (
    <Page title={title} bare>
      <div className={css.sheet}>
        <div>
          <header className={css.sheetHead}>
            <div>
              <h1>{title}</h1>
              {text && <p>{text}</p>}
            </div>
            {actions}
          </header>
          {children}
        </div>
      </div>
    </Page>
  )
}
