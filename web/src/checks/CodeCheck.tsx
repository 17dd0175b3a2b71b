import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { X } from 'lucide-react'
import { useId, useState } from 'react'
import { plain } from '../output'
import { Button, IconButton, ProblemBox } from '../parts'
import { bytes, seconds } from '../parts/format'
import { useWords } from '../words'
import { type Checked, checkCode, type Report } from './check'
import css from './checks.module.css'
import { Findings } from './Findings'

interface Props {
  /** Tells checks apart. */
  id: string
  what: () => Promise<Checked> | Checked
  /** The program can be run by itself, in a copy of its session. */
  runs?: boolean
  onClose: () => void
}

/** Looks at code, and shows what was found. */
export function CodeCheck({ id, what, runs, onClose }: Props) {
  const w = useWords()
  const own = useId()
  const [asked, setAsked] = useState({ measure: false, profile: false })
  const found = useQuery({
    queryKey: ['check', own, id, asked],
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    refetchOnWindowFocus: false,
    retry: false,
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }) => checkCode(await what(), asked, signal),
  })
  const report = found.data
  const slow = report?.findings.some((f) => f.rule.startsWith('slow-') && !f.measured)
  return (
    <section className={css.check} aria-label={w.checks.title} aria-busy={found.isFetching}>
      <div className={css.head}>
        <h4 role="status">
          {found.isFetching
            ? asked.profile
              ? w.checks.profiling
              : w.checks.checking
            : report
              ? w.checks.found(report.findings.length)
              : w.checks.title}
        </h4>
        <IconButton label={w.close} onClick={onClose}>
          <X size={15} aria-hidden />
        </IconButton>
      </div>
      {found.error && !found.isFetching ? (
        <ProblemBox error={found.error} onRetry={() => void found.refetch()} />
      ) : (
        report && <Findings items={report.findings} notes={report.notes ?? []} />
      )}
      {report?.profile && <Profile profile={report.profile} />}
      {report && !found.isFetching && (
        <div className={css.buttons}>
          {slow && <Button onClick={() => setAsked((a) => ({ ...a, measure: true }))}>{w.checks.measure}</Button>}
          {runs && !asked.profile && (
            <Button onClick={() => setAsked((a) => ({ ...a, profile: true }))}>{w.checks.profile}</Button>
          )}
        </div>
      )}
    </section>
  )
}

const shown = 20

/** Where the time of a run went, by line. */
function Profile({ profile: p }: { profile: NonNullable<Report['profile']> }) {
  const w = useWords()
  const lines = p.lines.slice(0, shown)
  const most = Math.max(...lines.map((l) => l.python + l.native + l.system), 0)
  return (
    <>
      <p className={css.note}>
        {w.checks.ran(seconds(p.seconds), bytes(p.peak_bytes))}
        {p.exit_code === undefined
          ? ` ${w.checks.stopped}`
          : p.exit_code !== 0
            ? ` ${w.checks.failed(p.exit_code)}`
            : ''}
      </p>
      {p.output && <pre className={css.output}>{plain(p.output, 4000)}</pre>}
      {lines.length > 0 && (
        <div className={css.scroll}>
          <table className={css.profile}>
            <thead>
              <tr>
                <th scope="col">{w.checks.columns.line}</th>
                <th scope="col">{w.checks.columns.code}</th>
                <th scope="col">{w.checks.columns.time}</th>
                <th scope="col">{w.checks.columns.memory}</th>
              </tr>
            </thead>
            <tbody>
              {lines.map((l) => {
                const time = l.python + l.native + l.system
                return (
                  <tr key={`${l.file ?? ''} ${l.cell ?? 0} ${l.line}`}>
                    <td>
                      {l.file ? `${plain(l.file, 60)}:` : ''}
                      {l.cell ? `${w.preview.cell(l.cell)}, ` : ''}
                      {l.line}
                    </td>
                    <td>
                      <code>{plain(l.code, 200)}</code>
                    </td>
                    <td>
                      <meter
                        min={0}
                        max={most || 1}
                        value={time}
                        aria-label={w.checks.columns.time}
                        title={w.checks.parts(seconds(l.python), seconds(l.native), seconds(l.system))}
                      />{' '}
                      {seconds(time)}
                    </td>
                    <td>{l.peak_bytes > 0 ? bytes(l.peak_bytes) : ''}</td>
                  </tr>
                )
              })}
            </tbody>
          </table>
        </div>
      )}
    </>
  )
}
