import { useQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { Link } from 'wouter'
import { type Caller, client, data, type Schemas } from '../../api/client'
import { queries } from '../../api/queries'
import { ask, Button, complain, ProblemBox, parts, toast } from '../../parts'
import { day } from '../../parts/format'
import { useWords } from '../../words'
import { Instructions } from '../Instructions'
import css from './admin.module.css'
import { Invitations } from './Invitations'
import { AdminSheet } from './Layout'
import { useNames, useUsers } from './names'
import { QuotaDialog, QuotaFacts, useUsed } from './Quota'
import { may } from './rights'

type Role = Schemas['Member']['role']

const roles: Role[] = ['owner', 'admin', 'member', 'viewer', 'auditor']

function RoleOptions() {
  const w = useWords()
  return roles.map((r) => (
    <option key={r} value={r}>
      {w.admin.roles[r]}
    </option>
  ))
}

function Members({ who, project }: { who: Caller; project: string }) {
  const w = useWords()
  const p = w.admin.projects
  const nameOf = useNames(who)
  const users = useUsers(may(who, 'server:manage')).data
  const list = useQuery({
    queryKey: ['members', project],
    queryFn: async () =>
      (await data(client.GET('/projects/{project}/members', { params: { path: { project } } }))).items,
  })
  const set = async (user: string, role: Role) => {
    try {
      await data(
        client.PUT('/projects/{project}/members/{user}', { params: { path: { project, user } }, body: { role } }),
      )
      toast(p.roleSet)
      return true
    } catch (error) {
      complain(error)
      return false
    } finally {
      await list.refetch()
    }
  }
  const remove = async (user: string) => {
    const name = nameOf(user)
    if ((await ask({ title: p.removeTitle, text: p.removeText(name), go: p.remove, bad: true })) === null) return
    try {
      await data(client.DELETE('/projects/{project}/members/{user}', { params: { path: { project, user } } }))
      await list.refetch()
    } catch (error) {
      complain(error)
    }
  }
  const add = async (e: FormEvent<HTMLFormElement>) => {
    e.preventDefault()
    const form = e.currentTarget
    const said = new FormData(form)
    if (await set(String(said.get('user')).trim(), String(said.get('role')) as Role)) form.reset()
  }
  return (
    <section className={css.group}>
      <h2>{p.members}</h2>
      {list.error && <ProblemBox error={list.error} onRetry={() => void list.refetch()} />}
      {list.data && !list.data.length && <p className={css.quiet}>{p.noMembers}</p>}
      {!!list.data?.length && (
        <table className={css.table}>
          <tbody>
            {list.data.map((m) => (
              <tr key={m.user}>
                <th scope="row" className={css.name}>
                  <bdi>{nameOf(m.user)}</bdi>
                  {m.user === who.user && <span className={css.quiet}> · {w.admin.you}</span>}
                </th>
                <td>
                  <select
                    className={css.select}
                    aria-label={p.role(nameOf(m.user))}
                    title={w.admin.roleTexts[m.role]}
                    value={m.role}
                    onChange={(e) => void set(m.user, e.target.value as Role)}
                  >
                    <RoleOptions />
                  </select>
                </td>
                <td className={css.act}>
                  <Button look="plain" onClick={() => void remove(m.user)}>
                    {w.admin.projects.remove}
                  </Button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <form className={css.form} onSubmit={(e) => void add(e)}>
        <input
          type="text"
          className={parts.field}
          name="user"
          required
          maxLength={200}
          aria-label={p.who}
          placeholder={p.who}
          autoComplete="off"
          list="known-users"
        />
        <datalist id="known-users">
          {users?.map((u) => (
            <option key={u.id} value={u.name} />
          ))}
        </datalist>
        <select className={css.select} name="role" defaultValue="member" aria-label={w.settings.role}>
          <RoleOptions />
        </select>
        <Button type="submit">{w.admin.add}</Button>
      </form>
      <dl className={css.details}>
        {roles.map((r) => (
          <div key={r} className={css.contents}>
            <dt>{w.admin.roles[r]}</dt>
            <dd className={css.quiet}>{w.admin.roleTexts[r]}</dd>
          </div>
        ))}
      </dl>
    </section>
  )
}

export function Project({ who, id }: { who: Caller; id: string }) {
  const w = useWords()
  const own = id === who.project
  const [setting, setSetting] = useState(false)
  const project = useQuery({
    queryKey: ['project', id],
    queryFn: () => data(client.GET('/projects/{project}', { params: { path: { project: id } } })),
  })
  const used = useUsed(own && may(who, 'sessions:read'))
  const p = project.data
  const save = async (quota: Schemas['Quota']) => {
    await data(client.PUT('/projects/{project}/quota', { params: { path: { project: id } }, body: quota }))
    await Promise.all([project.refetch(), queries.invalidateQueries({ queryKey: ['projects'] })])
  }
  return (
    <AdminSheet who={who} section="projects" title={p?.name ?? '…'} text={own ? w.admin.yours : ''}>
      {project.error && <ProblemBox error={project.error} onRetry={() => void project.refetch()} />}
      {p && (
        <>
          <dl className={css.facts}>
            <div>
              <dt>{w.admin.id}</dt>
              <dd>
                <code>{p.id}</code>
              </dd>
            </div>
            <div>
              <dt>{w.admin.created}</dt>
              <dd>{day(p.created_at, w.lang)}</dd>
            </div>
          </dl>
          <Instructions who={who} project={p.id} />
          <Members who={who} project={id} />
          <Invitations who={who} project={id} roles={roles} />
          <section className={css.group}>
            <h2>{w.admin.quota.title}</h2>
            <QuotaFacts
              {...(p.quota ? { quota: p.quota } : {})}
              {...(used.data ? { used: used.data } : {})}
              none={p.quota ? w.admin.quota.none : w.admin.quota.usual}
            />
            {may(who, 'server:manage') && (
              <div className={css.after}>
                <Button onClick={() => setSetting(true)}>{w.admin.quota.change}</Button>
              </div>
            )}
          </section>
          <section className={css.group}>
            <h2>{w.admin.projects.keys}</h2>
            <p className={css.quiet}>
              {own ? <Link href="/admin/keys">{w.admin.sections.keys}</Link> : w.admin.projects.otherKeys}
            </p>
          </section>
          {setting && (
            <QuotaDialog
              name={p.name}
              quota={p.quota}
              text={`${w.admin.quota.text} ${w.admin.quota.textProject}`}
              onSave={save}
              onClose={() => setSetting(false)}
            />
          )}
        </>
      )}
    </AdminSheet>
  )
}
