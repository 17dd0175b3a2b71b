import type { FormEvent } from 'react'
import { Link, useLocation } from 'wouter'
import { type Caller, client, data, once } from '../../api/client'
import { queries } from '../../api/queries'
import { Button, complain, ProblemBox, parts, toast } from '../../parts'
import { day } from '../../parts/format'
import { useWords } from '../../words'
import css from './admin.module.css'
import { AdminSheet } from './Layout'
import { useProjects } from './names'
import { quotaLine } from './Quota'
import { may } from './rights'

export function Projects({ who }: { who: Caller }) {
  const w = useWords()
  const [, navigate] = useLocation()
  const list = useProjects()
  const make = async (e: FormEvent<HTMLFormElement>) => {
    e.preventDefault()
    const form = e.currentTarget
    const name = String(new FormData(form).get('name')).trim()
    if (!name) return
    try {
      const made = await data(client.POST('/projects', { params: { header: once() }, body: { name } }))
      form.reset()
      toast(w.admin.projects.made)
      await queries.invalidateQueries({ queryKey: ['projects'] })
      navigate(`/admin/projects/${made.id}`)
    } catch (error) {
      complain(error)
    }
  }
  return (
    <AdminSheet who={who} section="projects" title={w.admin.sections.projects} text={w.admin.projects.text}>
      {may(who, 'server:manage') && (
        <form className={css.form} onSubmit={(e) => void make(e)}>
          <input
            type="text"
            className={parts.field}
            name="name"
            required
            maxLength={200}
            aria-label={w.admin.projects.label}
            placeholder={w.admin.projects.label}
            autoComplete="off"
          />
          <Button type="submit" look="primary">
            {w.admin.projects.make}
          </Button>
        </form>
      )}
      {list.error && <ProblemBox error={list.error} onRetry={() => void list.refetch()} />}
      {list.isPending && <p className={css.quiet}>{w.loading}</p>}
      {list.data && (
        <div className={css.box}>
          <table className={css.table}>
            <thead>
              <tr>
                <th scope="col">{w.admin.name}</th>
                <th scope="col">{w.admin.quota.title}</th>
                <th scope="col">{w.admin.created}</th>
              </tr>
            </thead>
            <tbody>
              {list.data.map((p) => (
                <tr key={p.id}>
                  <th scope="row" className={css.name}>
                    <Link href={`/admin/projects/${p.id}`}>
                      <bdi>{p.name}</bdi>
                    </Link>
                    {p.id === who.project && <span className={css.quiet}> · {w.admin.yours}</span>}
                  </th>
                  <td>{quotaLine(p.quota, w) || w.admin.quota.usual}</td>
                  <td className={css.nowrap}>{day(p.created_at, w.lang)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </AdminSheet>
  )
}
