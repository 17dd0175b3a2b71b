import { useQuery } from '@tanstack/react-query'
import { Pencil, Plus, Unplug, X } from 'lucide-react'
import { type FormEvent, useId, useState } from 'react'
import { client, data, type Schemas } from '../../api/client'
import { asProblem, type Problem } from '../../api/problem'
import { queries } from '../../api/queries'
import { Actions, ask, Button, complain, Details, IconButton, ProblemBox, parts, Segments, toast } from '../../parts'
import { useWords } from '../../words'
import { useExplain } from '../../words/problems'
import css from './admin.module.css'
import { type Draft, draftOf, newDraft, providers, said } from './draft'

type Connection = Schemas['Connection']
type Trial = Schemas['Trial']

async function again() {
  await Promise.all(['connections', 'models', 'settings'].map((key) => queries.invalidateQueries({ queryKey: [key] })))
}

/** The services of models that the server asks, for an admin of the server. */
export function Connections() {
  const w = useWords()
  const c = w.admin.connections
  const list = useQuery({
    queryKey: ['connections'],
    queryFn: async () => (await data(client.GET('/connections'))).items,
  })
  const [draft, setDraft] = useState<Draft | null>(null)
  const remove = async (one: Connection) => {
    const name = c.names[one.provider]
    if ((await ask({ title: c.removeTitle(name), text: c.removeText, go: c.remove, bad: true })) === null) return
    try {
      await data(client.DELETE('/connections/{provider}', { params: { path: { provider: one.provider } } }))
      toast(c.removed)
      await again()
    } catch (error) {
      complain(error)
    }
  }
  return (
    <section className={css.group}>
      <h2>{c.title}</h2>
      {list.error && <ProblemBox error={list.error} onRetry={() => void list.refetch()} />}
      {list.data && !list.data.length && !draft && <p className={css.quiet}>{c.none}</p>}
      {!!list.data?.length && (
        <div className={css.box}>
          <table className={css.table}>
            <tbody>
              {list.data.map((one) => (
                <tr key={one.provider}>
                  <th scope="row" className={css.name}>
                    {c.names[one.provider]}
                    <span className={css.id}>{one.address || c.usual}</span>
                  </th>
                  <td>
                    <bdi>{one.models.join(', ') || c.anyModel}</bdi>
                    {one.key_end && <span className={css.quiet}> · {c.keyEnds(one.key_end)}</span>}
                    {one.from === 'settings' && <span className={css.quiet}> · {c.ofSettings}</span>}
                  </td>
                  <td className={css.act}>
                    <Actions
                      label={w.nav.actions(c.names[one.provider])}
                      actions={[
                        {
                          id: 'edit',
                          label: c.edit,
                          icon: <Pencil size={15} aria-hidden />,
                          act: () => setDraft(draftOf(one)),
                        },
                        ...(one.from === 'api'
                          ? [
                              {
                                id: 'remove',
                                label: c.remove,
                                icon: <Unplug size={15} aria-hidden />,
                                bad: true,
                                act: () => void remove(one),
                              },
                            ]
                          : []),
                      ]}
                    />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {draft ? (
        <Form key={draft.key} first={draft} onDone={() => setDraft(null)} />
      ) : (
        list.data && (
          <div className={css.after}>
            <Button look={list.data.length ? 'outlined' : 'primary'} onClick={() => setDraft(newDraft())}>
              {c.add}
            </Button>
          </div>
        )
      )}
    </section>
  )
}

function Form({ first, onDone }: { first: Draft; onDone: () => void }) {
  const w = useWords()
  const c = w.admin.connections
  const id = useId()
  const [d, setDraft] = useState(first)
  const [busy, setBusy] = useState<'try' | 'save' | null>(null)
  const [trial, setTrial] = useState<Trial | null>(null)
  const [problem, setProblem] = useState<Problem | null>(null)
  const change = (part: Partial<Draft>) => {
    setDraft({ ...d, ...part })
    setTrial(null)
    setProblem(null)
  }
  const work = async (what: 'try' | 'save', f: () => Promise<void>) => {
    setBusy(what)
    setProblem(null)
    try {
      await f()
    } catch (error) {
      setProblem(asProblem(error))
    } finally {
      setBusy(null)
    }
  }
  const tryIt = () =>
    work('try', async () => {
      setTrial(null)
      const got = await data(client.POST('/connections/try', { body: { provider: d.provider, ...said(d) } }))
      setTrial(got)
      // One that the service has is as good a beginning as any.
      if (got.models[0] && !d.models.some((m) => m.trim())) setDraft({ ...d, models: [got.models[0]] })
    })
  const save = (e: FormEvent) => {
    e.preventDefault()
    void work('save', async () => {
      await data(client.PUT('/connections/{provider}', { params: { path: { provider: d.provider } }, body: said(d) }))
      toast(c.saved)
      await again()
      onDone()
    })
  }
  const setModel = (at: number, name: string) => change({ models: d.models.map((m, i) => (i === at ? name : m)) })
  return (
    <form className={css.connection} onSubmit={save} aria-label={c.add}>
      <Segments
        label={w.admin.models.provider}
        value={d.provider}
        options={providers.map((p) => ({ id: p, name: c.names[p] }))}
        onChange={(provider) => change(newDraft(provider))}
      />
      <p className={css.quiet}>{c.about[d.provider]}</p>
      <label htmlFor={`${id}-address`}>{c.address}</label>
      <input
        id={`${id}-address`}
        className={parts.field}
        type="url"
        maxLength={500}
        value={d.address}
        placeholder={c.addressOf[d.provider]}
        autoComplete="off"
        onChange={(e) => change({ address: e.target.value })}
      />
      {d.provider !== 'ollama' && (
        <>
          <label htmlFor={`${id}-key`}>{c.key}</label>
          <input
            id={`${id}-key`}
            className={parts.field}
            type="password"
            maxLength={1000}
            value={d.secret}
            placeholder={d.has && d.address.trim() === first.address ? c.keyKept(d.has) : ''}
            autoComplete="off"
            aria-describedby={`${id}-kept`}
            onChange={(e) => change({ secret: e.target.value })}
          />
          <p id={`${id}-kept`} className={css.quiet}>
            {c.keyText}
          </p>
        </>
      )}
      <span id={`${id}-models`}>{c.models}</span>
      <ul aria-labelledby={`${id}-models`}>
        {d.models.map((name, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the rows are fields, and have no identity but their place
          <li key={at}>
            <input
              className={parts.field}
              type="text"
              required={at === 0}
              maxLength={200}
              value={name}
              list={`${id}-known`}
              aria-label={at === 0 ? c.usualModel : c.model(at + 1)}
              placeholder={c.modelOf[d.provider]}
              autoComplete="off"
              onChange={(e) => setModel(at, e.target.value)}
            />
            {at === 0 ? (
              <span className={css.quiet}>{w.admin.models.usual}</span>
            ) : (
              <IconButton
                small
                label={c.without(name || c.model(at + 1))}
                onClick={() => change({ models: d.models.filter((_, i) => i !== at) })}
              >
                <X size={16} aria-hidden />
              </IconButton>
            )}
          </li>
        ))}
      </ul>
      <datalist id={`${id}-known`}>
        {trial?.models.map((m) => (
          <option key={m} value={m} />
        ))}
      </datalist>
      <Button look="plain" onClick={() => change({ models: [...d.models, ''] })}>
        <Plus size={16} aria-hidden /> {c.more}
      </Button>
      {trial && !trial.problem && (
        <p role="status" className={css.good}>
          {c.works(trial.models.length, trial.seconds)}
          {trial.answer && <q>{trial.answer}</q>}
        </p>
      )}
      {trial?.problem && <TrialProblem problem={trial.problem} />}
      {problem && <ProblemBox error={problem} />}
      <div className={css.after}>
        <Button type="submit" look="primary" disabled={busy !== null}>
          {c.save}
        </Button>
        <Button look="outlined" disabled={busy !== null} onClick={() => void tryIt()}>
          {busy === 'try' ? c.trying : c.try}
        </Button>
        <Button look="plain" onClick={onDone}>
          {w.cancel}
        </Button>
      </div>
    </form>
  )
}

/** Why a service did not answer. What it said itself is what helps who connects it. */
function TrialProblem({ problem }: { problem: Schemas['TrialProblem'] }) {
  const { what, todo, detail } = useExplain()(problem)
  return (
    <div role="alert" className={css.bad}>
      <p>{what}</p>
      {!detail && todo && <p>{todo}</p>}
      <Details text={detail} open />
    </div>
  )
}
