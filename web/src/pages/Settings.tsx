import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { api } from '../api/base'
import { type Caller, client, data, keepDevKey, post, send } from '../api/client'
import { useMe } from '../api/queries'
import { Button, complain, Segments } from '../parts'
import { moment } from '../parts/format'
import { Links } from '../share/Links'
import { useSharing } from '../share/links'
import { Sheet } from '../shell/Page'
import { prefer, usePreferences } from '../shell/preferences'
import { usePasswords } from '../signin/ways'
import { languageOf, languages, useWords } from '../words'
import { PasswordDialog } from './Account'
import { may } from './admin/rights'
import { Instructions } from './Instructions'
import css from './pages.module.css'

interface Browser {
  id: string
  agent?: string
  name?: string
  used_at?: string
  created_at?: string
  current?: boolean
}

function Setting({ name, note, children }: { name: string; note?: string; children: ReactNode }) {
  return (
    <div className={css.setting}>
      <span>
        {name}
        {note && <small>{note}</small>}
      </span>
      {children}
    </div>
  )
}

/** A name with its id. */
function Name({ id, name }: { id: string; name: string }) {
  return (
    <span>
      <bdi>{name} </bdi>
      <code>{id}</code>
    </span>
  )
}

export default function Settings({ who: came }: { who: Caller }) {
  const who = useMe().data ?? came // a password may be set here
  const w = useWords()
  const p = usePreferences()
  const s = w.settings
  const passwords = usePasswords()
  const sharing = useSharing()
  const [changing, setChanging] = useState(false)
  const browsers = useQuery({
    queryKey: ['browsers'],
    retry: false,
    queryFn: async () => ((await (await send(api('browsers'))).json()) as { items?: Browser[] }).items ?? [],
  })
  const version = useQuery({ queryKey: ['version'], queryFn: () => data(client.GET('/version')) })
  const out = async () => {
    await post('sign-out').catch(() => undefined)
    keepDevKey(null)
    location.reload()
  }
  return (
    <Sheet title={s.title}>
      <section className={css.group}>
        <h2>{s.appearance}</h2>
        <Setting name={w.language}>
          <Segments
            label={w.language}
            value={languageOf(p.language)}
            options={languages}
            onChange={(language) => prefer({ language })}
          />
        </Setting>
        <Setting name={w.theme.label}>
          <Segments
            label={w.theme.label}
            value={p.theme}
            options={(['system', 'light', 'dark'] as const).map((id) => ({ id, name: w.theme[id] }))}
            onChange={(theme) => prefer({ theme })}
          />
        </Setting>
        <Setting name={w.shell.contrast}>
          <Segments
            label={w.shell.contrast}
            value={p.contrast}
            options={[
              { id: 'system', name: w.shell.usual },
              { id: 'high', name: w.shell.high },
            ]}
            onChange={(contrast) => prefer({ contrast })}
          />
        </Setting>
      </section>
      <section className={css.group}>
        <h2>{s.input}</h2>
        <Setting name={s.sendKey}>
          <Segments
            label={s.sendKey}
            value={p.sendKey}
            options={[
              { id: 'enter', name: s.enter },
              { id: 'mod', name: s.modEnter },
            ]}
            onChange={(sendKey) => prefer({ sendKey })}
          />
        </Setting>
        <Setting name={s.keys}>
          <Segments
            label={s.keys}
            value={p.letters ? 'on' : 'off'}
            options={[
              { id: 'on', name: s.on },
              { id: 'off', name: s.off },
            ]}
            onChange={(v) => prefer({ letters: v === 'on' })}
          />
        </Setting>
        <Setting name={w.checks.always}>
          <Segments
            label={w.checks.always}
            value={p.checks ? 'on' : 'off'}
            options={[
              { id: 'on', name: s.on },
              { id: 'off', name: s.off },
            ]}
            onChange={(v) => prefer({ checks: v === 'on' })}
          />
        </Setting>
        <Setting name={w.tries.setting} note={w.tries.note}>
          <Segments
            label={w.tries.setting}
            value={String(p.tries)}
            options={[
              { id: '1', name: w.tries.once },
              { id: '3', name: w.tries.times(3) },
              { id: '5', name: w.tries.times(5) },
            ]}
            onChange={(v) => prefer({ tries: v === '5' ? 5 : v === '3' ? 3 : 1 })}
          />
        </Setting>
      </section>
      {may(who, 'conversations:read') && <Instructions who={who} project={who.project} />}
      <section className={css.group}>
        <h2>{s.account}</h2>
        <Setting name={s.user}>
          <Name id={who.user} name={who.user_name} />
        </Setting>
        <Setting name={s.project}>
          <Name id={who.project} name={who.project_name} />
        </Setting>
        <Setting name={s.role}>
          <span>{w.admin.roles[who.role] ?? who.role}</span>
        </Setting>
        {who.login && (
          <Setting name={w.account.signsIn}>
            <bdi>{who.login}</bdi>
          </Setting>
        )}
        {passwords && (
          <Setting name={w.account.password}>
            <Button onClick={() => setChanging(true)}>{who.login ? w.account.change : w.account.set}</Button>
          </Setting>
        )}
        <Setting name={s.version}>
          <span>{version.data?.version ?? ''}</span>
        </Setting>
        <Setting name="">
          <Button onClick={() => void out()}>{w.signIn.out}</Button>
        </Setting>
      </section>
      <section className={css.group}>
        <h2>{s.browsers}</h2>
        {browsers.error && <p className={css.quiet}>{s.browsersNone}</p>}
        {browsers.data?.map((b) => (
          <Setting key={b.id} name={`${b.name || b.agent || b.id}${b.current ? ` · ${s.current}` : ''}`}>
            <span className={css.quiet}>{b.used_at ? moment(b.used_at, w.lang) : ''}</span>
            <Button
              onClick={() =>
                void post(`browsers/${b.id}`, undefined, 'DELETE')
                  .then(() => browsers.refetch())
                  .catch(complain)
              }
            >
              {s.revoke}
            </Button>
          </Setting>
        ))}
      </section>
      {sharing && may(who, 'conversations:read') && (
        <section className={css.group}>
          <h2>{w.share.all}</h2>
          <p className={css.note}>{w.share.allText}</p>
          <Links />
        </section>
      )}
      {changing && <PasswordDialog who={who} onClose={() => setChanging(false)} />}
    </Sheet>
  )
}
