import { useQuery } from '@tanstack/react-query'
import { Copy } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { type Caller, client, data, type Schemas } from '../../api/client'
import { ask, Button, complain, copyText, IconButton, ProblemBox, parts } from '../../parts'
import { moment } from '../../parts/format'
import { useWords } from '../../words'
import css from '../pages.module.css'
import { AdminSheet } from './Layout'
import { useNames } from './names'
import { QuotaDialog, quotaLine } from './Quota'
import { may } from './rights'

export function Keys({ who }: { who: Caller }) {
  const w = useWords()
  const [made, setMade] = useState('')
  const [revoked, setRevoked] = useState(false)
  const [limiting, setLimiting] = useState<Schemas['Key'] | null>(null)
  const nameOf = useNames(who)
  const list = useQuery({ queryKey: ['keys'], queryFn: async () => (await data(client.GET('/keys'))).items })
  const make = async (e: FormEvent<HTMLFormElement>) => {
    e.preventDefault()
    const form = e.currentTarget
    try {
      setMade(
        (await data(client.POST('/keys', { body: { name: String(new FormData(form).get('name')).trim() } }))).text,
      )
      form.reset()
      await list.refetch()
    } catch (error) {
      complain(error)
    }
  }
  const revoke = async (key: Schemas['Key']) => {
    if ((await ask({ title: w.keys.revokeTitle, text: w.keys.revokeText, go: w.keys.revoke, bad: true })) === null)
      return
    try {
      await data(client.DELETE('/keys/{key}', { params: { path: { key: key.id } } }))
      await list.refetch()
    } catch (error) {
      complain(error)
    }
  }
  return (
    <AdminSheet who={who} section="keys" title={w.keys.title} text={w.keys.text}>
      <form className={css.make} onSubmit={(e) => void make(e)}>
        <input
          className={parts.field}
          name="name"
          required
          maxLength={100}
          aria-label={w.keys.label}
          placeholder={w.keys.label}
          autoComplete="off"
        />
        <Button type="submit" look="primary">
          {w.keys.make}
        </Button>
      </form>
      {made && (
        <div className={css.made} role="status">
          <p>{w.keys.made}</p>
          <code>{made}</code>
          <IconButton label={w.copy} onClick={() => copyText(made, w.copied)}>
            <Copy size={15} aria-hidden />
          </IconButton>
        </div>
      )}
      {list.error && <ProblemBox error={list.error} onRetry={() => void list.refetch()} />}
      {list.data && !list.data.length && <p className={css.quiet}>{w.keys.empty}</p>}
      <ul className={css.rows}>
        {list.data
          ?.filter((k) => revoked || !k.revoked_at)
          .map((k) => (
            <li key={k.id}>
              <div>
                <bdi className={css.main}>{k.name}</bdi>
                <code>…{k.last4}</code>
                {k.user !== who.user && <span>{nameOf(k.user)}</span>}
                {k.quota && <span>{quotaLine(k.quota, w)}</span>}
                <span>{k.used_at ? moment(k.used_at, w.lang) : w.keys.never}</span>
              </div>
              {k.revoked_at ? (
                <span className={css.quiet}>{w.keys.revoked}</span>
              ) : (
                <>
                  {may(who, 'users:manage') && <Button onClick={() => setLimiting(k)}>{w.admin.keys.quota}</Button>}
                  <Button onClick={() => void revoke(k)}>{w.keys.revoke}</Button>
                </>
              )}
            </li>
          ))}
      </ul>
      {list.data?.some((k) => k.revoked_at) && (
        <label className={css.check}>
          <input type="checkbox" checked={revoked} onChange={(e) => setRevoked(e.target.checked)} />
          {w.admin.keys.showRevoked}
        </label>
      )}
      {limiting && (
        <QuotaDialog
          name={limiting.name}
          quota={limiting.quota}
          text={w.admin.quota.text}
          onSave={async (quota) => {
            await data(client.PUT('/keys/{key}/quota', { params: { path: { key: limiting.id } }, body: quota }))
            await list.refetch()
          }}
          onClose={() => setLimiting(null)}
        />
      )}
    </AdminSheet>
  )
}
