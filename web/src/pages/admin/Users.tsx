import { KeyRound, ShieldCheck, ShieldOff, Trash2 } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { type Caller, client, data, once, type Schemas } from '../../api/client'
import { queries } from '../../api/queries'
import { Actions, ask, Button, complain, ProblemBox, parts, toast } from '../../parts'
import { day } from '../../parts/format'
import { useWords } from '../../words'
import css from './admin.module.css'
import { PasswordLink, passwordLink } from './Invitations'
import { AdminSheet } from './Layout'
import { useUsers } from './names'

type User = Schemas['User']

const again = () => queries.invalidateQueries({ queryKey: ['users'] })

export function Users({ who }: { who: Caller }) {
  const w = useWords()
  const u = w.admin.users
  const list = useUsers(true)
  const [made, setMade] = useState<{ name: string; address: string } | null>(null)
  const link = async (user: User) => {
    try {
      setMade({ name: user.name, address: await passwordLink(user.id) })
    } catch (error) {
      complain(error)
    }
  }
  const make = async (e: FormEvent<HTMLFormElement>) => {
    e.preventDefault()
    const form = e.currentTarget
    const said = new FormData(form)
    const name = String(said.get('name')).trim()
    if (!name) return
    try {
      await data(
        client.POST('/users', { params: { header: once() }, body: { name, admin: said.get('admin') === 'on' } }),
      )
      form.reset()
      toast(u.made)
      await again()
    } catch (error) {
      complain(error)
    }
  }
  const change = async (user: User) => {
    const yes = await ask(
      user.admin
        ? { title: u.unmakeTitle(user.name), text: u.unmakeText, go: u.unmake, bad: true }
        : { title: u.makeAdminTitle(user.name), text: u.makeAdminText, go: u.makeAdmin },
    )
    if (yes === null) return
    try {
      await data(client.PATCH('/users/{user}', { params: { path: { user: user.id } }, body: { admin: !user.admin } }))
      await again()
    } catch (error) {
      complain(error)
    }
  }
  const remove = async (user: User) => {
    if ((await ask({ title: u.deleteTitle(user.name), text: u.deleteText, go: w.remove, bad: true })) === null) return
    try {
      await data(client.DELETE('/users/{user}', { params: { path: { user: user.id } } }))
      toast(u.deleted)
      await again()
    } catch (error) {
      complain(error)
    }
  }
  return (
    <AdminSheet who={who} section="users" title={w.admin.sections.users} text={u.text}>
      <form className={css.form} onSubmit={(e) => void make(e)}>
        <input
          type="text"
          className={parts.field}
          name="name"
          required
          maxLength={200}
          aria-label={u.label}
          placeholder={u.label}
          autoComplete="off"
        />
        <label>
          <input type="checkbox" name="admin" />
          {u.isAdmin}
        </label>
        <Button type="submit" look="primary">
          {u.make}
        </Button>
      </form>
      {list.error && <ProblemBox error={list.error} onRetry={() => void list.refetch()} />}
      {list.isPending && <p className={css.quiet}>{w.loading}</p>}
      {list.data && (
        <table className={css.table}>
          <thead>
            <tr>
              <th scope="col">{w.admin.name}</th>
              <th scope="col">{w.admin.created}</th>
              <td />
            </tr>
          </thead>
          <tbody>
            {list.data.map((user) => (
              <tr key={user.id}>
                <th scope="row" className={css.name}>
                  <bdi>{user.name}</bdi>
                  {user.id === who.user && <span className={css.quiet}> · {w.admin.you}</span>}
                  {user.admin && <span className={css.quiet}> · {u.isAdmin}</span>}
                  <span className={css.id}>{user.id}</span>
                </th>
                <td className={css.nowrap}>{day(user.created_at, w.lang)}</td>
                <td className={css.act}>
                  <Actions
                    label={w.nav.actions(user.name)}
                    actions={[
                      {
                        id: 'admin',
                        label: user.admin ? u.unmake : u.makeAdmin,
                        icon: user.admin ? <ShieldOff size={15} aria-hidden /> : <ShieldCheck size={15} aria-hidden />,
                        act: () => void change(user),
                      },
                      {
                        id: 'password',
                        label: w.invitations.link,
                        icon: <KeyRound size={15} aria-hidden />,
                        act: () => void link(user),
                      },
                      {
                        id: 'remove',
                        label: w.remove,
                        icon: <Trash2 size={15} aria-hidden />,
                        bad: true,
                        act: () => void remove(user),
                      },
                    ]}
                  />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {made && <PasswordLink {...made} onClose={() => setMade(null)} />}
    </AdminSheet>
  )
}
