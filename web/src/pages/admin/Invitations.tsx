import { useQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { type Caller, client, data, type Schemas } from '../../api/client'
import { ask, Button, complain, Dialog, ProblemBox, parts } from '../../parts'
import { moment } from '../../parts/format'
import { Address } from '../../share/Address'
import { invitationAddress } from '../../share/links'
import { useWords } from '../../words'
import css from './admin.module.css'
import { useNames } from './names'

type Role = Schemas['Member']['role']

const lives = ['3600', '86400', '604800', '2592000']
const usual = '604800'
const passwordLife = 86_400

/** Invitations to a project. The list has those to the caller's own: the server gives no others. */
export function Invitations({ who, project, roles }: { who: Caller; project: string; roles: readonly Role[] }) {
  const w = useWords()
  const i = w.invitations
  const own = project === who.project
  const nameOf = useNames(who)
  const [made, setMade] = useState('')
  const list = useQuery({
    queryKey: ['invitations'],
    enabled: own,
    queryFn: async () => (await data(client.GET('/invitations'))).items,
  })
  const invite = async (e: FormEvent<HTMLFormElement>) => {
    e.preventDefault()
    const form = e.currentTarget
    const said = new FormData(form)
    const name = String(said.get('name')).trim()
    try {
      const { code } = await data(
        client.POST('/invitations', {
          body: {
            project,
            role: String(said.get('role')) as Role,
            seconds: Number(said.get('seconds')),
            ...(name ? { name } : {}),
          },
        }),
      )
      setMade(invitationAddress(code))
      form.reset()
      if (own) await list.refetch()
    } catch (error) {
      complain(error)
    }
  }
  const withdraw = async (id: string) => {
    if ((await ask({ title: i.withdrawTitle, text: i.withdrawText, go: i.withdraw, bad: true })) === null) return
    try {
      await data(client.DELETE('/invitations/{invitation}', { params: { path: { invitation: id } } }))
    } catch (error) {
      complain(error)
    }
    await list.refetch()
  }
  return (
    <section className={css.group}>
      <h2>{i.title}</h2>
      <p className={css.quiet}>{i.text}</p>
      <form className={css.form} onSubmit={(e) => void invite(e)}>
        <input
          type="text"
          className={parts.field}
          name="name"
          maxLength={200}
          aria-label={i.name}
          placeholder={i.name}
          autoComplete="off"
        />
        <select className={css.select} name="role" defaultValue="member" aria-label={w.settings.role}>
          {roles.map((r) => (
            <option key={r} value={r}>
              {w.admin.roles[r]}
            </option>
          ))}
        </select>
        <label>
          {i.life}
          <select className={css.select} name="seconds" defaultValue={usual}>
            {lives.map((l) => (
              <option key={l} value={l}>
                {i.lives[l]}
              </option>
            ))}
          </select>
        </label>
        <Button type="submit">{i.make}</Button>
      </form>
      {made && <Address text={i.made} address={made} />}
      {list.error && <ProblemBox error={list.error} onRetry={() => void list.refetch()} />}
      {list.data && !list.data.length && <p className={css.quiet}>{i.none}</p>}
      {!!list.data?.length && (
        <table className={css.table}>
          <tbody>
            {list.data.map((x) => (
              <tr key={x.id}>
                <th scope="row" className={css.name}>
                  <bdi>{x.role ? x.name || w.admin.roles[x.role] : nameOf(x.user ?? '')}</bdi>
                  <span className={css.quiet}>
                    {' '}
                    · {x.role ? w.admin.roles[x.role] : i.newPassword} · {i.until(moment(x.expires_at, w.lang))} ·{' '}
                    {i.by(nameOf(x.created_by))}
                  </span>
                </th>
                <td className={css.act}>
                  <Button look="plain" onClick={() => void withdraw(x.id)}>
                    {i.withdraw}
                  </Button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  )
}

/** Makes the address by which a user sets a new password. */
export async function passwordLink(user: string): Promise<string> {
  const { code } = await data(client.POST('/invitations', { body: { user, seconds: passwordLife } }))
  return invitationAddress(code)
}

/** Shows the address for a new password this once. */
export function PasswordLink({ name, address, onClose }: { name: string; address: string; onClose: () => void }) {
  const w = useWords()
  const i = w.invitations
  return (
    <Dialog title={i.linkTitle(name)} onClose={onClose}>
      <Address text={i.linkText(name)} address={address} />
      <div className={parts.row}>
        <Button look="primary" onClick={onClose}>
          {w.close}
        </Button>
      </div>
    </Dialog>
  )
}
