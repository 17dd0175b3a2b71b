import { useQuery } from '@tanstack/react-query'
import { type Caller, client, data } from '../../api/client'
import { asProblem, type Problem } from '../../api/problem'
import { useModels } from '../../api/queries'
import { Button, ProblemBox } from '../../parts'
import { bytes, clock } from '../../parts/format'
import { useWords } from '../../words'
import { useExplain } from '../../words/problems'
import css from './admin.module.css'
import { Connections } from './Connections'
import { AdminSheet } from './Layout'
import { may } from './rights'

export function Models({ who }: { who: Caller }) {
  const w = useWords()
  const m = w.admin.models
  const list = useModels()
  return (
    <AdminSheet who={who} section="models" title={w.admin.sections.models} text={m.text}>
      {list.error && <ProblemBox error={list.error} onRetry={() => void list.refetch()} />}
      {list.isPending && <p className={css.quiet}>{w.loading}</p>}
      {list.data && !list.data.length && <p className={css.quiet}>{m.empty}</p>}
      {!!list.data?.length && (
        <table className={css.table}>
          <thead>
            <tr>
              <th scope="col">{w.admin.name}</th>
              <th scope="col">{m.provider}</th>
            </tr>
          </thead>
          <tbody>
            {list.data.map((model) => (
              <tr key={model.id}>
                <th scope="row" className={css.name}>
                  <bdi>{model.id}</bdi>
                  {model.default && <span className={css.quiet}> · {m.usual}</span>}
                </th>
                <td>{model.provider}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {may(who, 'server:manage') && <Connections />}
    </AdminSheet>
  )
}

const problemIn = async (work: Promise<unknown>): Promise<Problem | null> =>
  work.then(
    () => null,
    (error: unknown) => asProblem(error),
  )

function Fact({ name, problem, children }: { name: string; problem?: Problem | null | undefined; children: string }) {
  const explain = useExplain()
  const said = problem && explain(problem)
  return (
    <div>
      <dt>{name}</dt>
      <dd data-bad={problem ? true : undefined}>
        {children}
        {said && <small>{[said.what, said.todo].filter(Boolean).join(' ')}</small>}
      </dd>
    </div>
  )
}

export function Server({ who }: { who: Caller }) {
  const w = useWords()
  const s = w.admin.server
  const yes = (b: boolean) => (b ? s.yes : s.no)
  const version = useQuery({ queryKey: ['version'], queryFn: () => data(client.GET('/version')) })
  const settings = useQuery({ queryKey: ['settings'], queryFn: () => data(client.GET('/settings')) })
  // It says how the server is: a failure is an answer, and not tried again.
  const health = useQuery({
    queryKey: ['health'],
    staleTime: 0,
    refetchInterval: 30_000,
    queryFn: async () => {
      const [answers, ready] = await Promise.all([
        problemIn(data(client.GET('/health'))),
        problemIn(data(client.GET('/health/ready'))),
      ])
      return { answers, ready, at: new Date().toISOString() }
    },
  })
  const failed = version.error ?? settings.error
  return (
    <AdminSheet
      who={who}
      section="server"
      title={w.admin.sections.server}
      text={s.text}
      actions={
        <Button disabled={health.isFetching} onClick={() => void health.refetch()}>
          {s.check}
        </Button>
      }
    >
      {failed && (
        <ProblemBox error={failed} onRetry={() => void Promise.all([version.refetch(), settings.refetch()])} />
      )}
      <dl className={css.facts}>
        {health.data && (
          <>
            <Fact name={s.answers} problem={health.data.answers}>
              {yes(!health.data.answers)}
            </Fact>
            <Fact name={s.ready} problem={health.data.ready}>
              {yes(!health.data.ready)}
            </Fact>
          </>
        )}
        {version.data && (
          <>
            <Fact name={s.version}>{version.data.version}</Fact>
            <Fact name={s.go}>{version.data.go}</Fact>
            <Fact name={s.api}>{version.data.api}</Fact>
          </>
        )}
        {settings.data && (
          <>
            <Fact name={s.model}>{yes(settings.data.model)}</Fact>
            <Fact name={s.upload}>{bytes(settings.data.upload_bytes)}</Fact>
            <Fact name={s.json}>{bytes(settings.data.json_bytes)}</Fact>
            <Fact name={s.scripts}>{yes(settings.data.scripts)}</Fact>
          </>
        )}
      </dl>
      <p className={css.quiet} role="status">
        {health.data ? s.checked(clock(health.data.at, w.lang)) : w.loading}
      </p>
    </AdminSheet>
  )
}
