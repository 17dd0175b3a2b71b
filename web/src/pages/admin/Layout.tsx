import { type ReactNode, useEffect, useState } from 'react'
import { Link, useLocation } from 'wouter'
import type { Caller } from '../../api/client'
import { Page } from '../../shell/Page'
import { useWords } from '../../words'
import css from './admin.module.css'
import { useProjects, useUsers } from './names'
import { may, type Section, shownTo } from './rights'

const outside: readonly Section[] = ['projects', 'users', 'audit']

/** What was shown once stays, as long as the page. */
let opened = false

/** A page of the administration, beside the quiet list of all of them. */
export function AdminSheet({
  who,
  section,
  title,
  text,
  actions,
  children,
}: {
  who: Caller
  section: Section
  title: string
  text?: string
  actions?: ReactNode
  children: ReactNode
}) {
  const w = useWords()
  const rules = may(who, 'server:manage')
  const [location] = useLocation()
  const [open, setOpen] = useState(opened)
  const users = useUsers(rules).data
  const projects = useProjects(rules).data
  const alone = rules && (users?.length ?? 1) <= 1 && (projects?.length ?? 1) <= 1
  const all = !alone || open || outside.includes(section)
  useEffect(() => {
    opened ||= all
  }, [all])
  return (
    <Page title={title} bare>
      <div className={css.sheet}>
        <div className={css.columns}>
          <nav className={css.side} aria-label={w.admin.title}>
            <ul>
              {shownTo(who, all).map((s) => (
                <li key={s}>
                  <Link
                    href={`/admin/${s}`}
                    aria-current={s === section ? (location === `/admin/${s}` ? 'page' : 'true') : undefined}
                  >
                    {w.admin.sections[s]}
                  </Link>
                </li>
              ))}
              {!all && (
                <li>
                  <button type="button" title={w.admin.everythingHint} onClick={() => setOpen(true)}>
                    {w.admin.everything}
                  </button>
                </li>
              )}
            </ul>
          </nav>
          <div className={css.content}>
            <header className={css.head}>
              <div>
                <h1>{title}</h1>
                {text && <p>{text}</p>}
              </div>
              {actions}
            </header>
            {children}
          </div>
        </div>
      </div>
    </Page>
  )
}
