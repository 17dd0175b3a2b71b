import { FilePlus, FileText } from 'lucide-react'
import { memo, useState } from 'react'
import { explain } from '../words/problems'
import { ApproveInstall } from './approve'
import css from './notes.module.css'
import type { DoneEvent, FileEvent, InstallEvent, ProgressEvent, RollbackEvent } from './types'
import { fill, number, plain, size, type Words, words } from './words'

interface Named {
  name?: unknown
  version?: unknown
}

function what(packages: unknown): string {
  const list: unknown[] = Array.isArray(packages) ? packages : []
  const asked = list.filter((p) => p !== null && typeof p === 'object' && (p as { asked?: unknown }).asked === true)
  const named = (asked.length > 0 ? asked : list).map((p) =>
    typeof p === 'string'
      ? plain(p, 80)
      : `${plain((p as Named)?.name, 80)} ${plain((p as Named)?.version, 40)}`.trim(),
  )
  const w = words()
  if (named.length > 4) return `${named.slice(0, 3).join(', ')} +${number(named.length - 3)}`
  return named.join(', ') || fill(w.packages, { n: list.length })
}

export const Install = memo(function Install({
  progress,
  event,
  live,
}: {
  progress: ProgressEvent | null
  event: InstallEvent | null
  live: boolean
}) {
  const w = words()
  if (!event) return progress && live ? <Progress event={progress} /> : null
  const packages = Array.isArray(event.packages) ? event.packages : []
  const refused = Array.isArray(event.refused) ? event.refused : []
  const notes = Array.isArray(event.notes) ? event.notes : []
  return (
    <section className={css.install}>
      {packages.length > 0 && (
        <details className={css.details}>
          <summary>{fill(w.installed, { what: what(packages) })}</summary>
          <ul>
            {packages.slice(0, 200).map((p) => (
              <li key={p.name}>
                {plain(p.name)} {plain(p.version)}
                {p.size ? ` · ${size(p.size)}` : ''}
                {p.module && p.module !== p.name ? ` · ${fill(w.because, { what: plain(p.module) })}` : ''}
              </li>
            ))}
          </ul>
          {event.cached && <p>{w.cachedWas}</p>}
        </details>
      )}
      {refused.slice(0, 50).map((r) => (
        <p key={r.name} className={css.warning}>
          <b>{fill(w.notInstalled, { name: plain(r.name) })}</b>
          <Why code={r.code} message={r.reason} hint={r.hint} />
          {r.code === 'package_needs_approval' && !live && <ApproveInstall name={r.name} />}
        </p>
      ))}
      {event.failure && (
        <p className={css.warning}>
          <b>{w.installFailed}</b>
          <Why {...event.failure} />
        </p>
      )}
      {event.restarted && <p>{w.restarted}</p>}
      {event.needs_restart && !event.restarted && (
        <p className={css.warning}>
          <b>{w.needsRestart}</b> {plain(event.needs_restart, 500)}
        </p>
      )}
      {notes.slice(0, 20).map((n) => (
        <p key={String(n)}>{plain(n, 500)}</p>
      ))}
    </section>
  )
})

function Progress({ event }: { event: ProgressEvent }) {
  const w = words()
  const [got, all] = [Number(event.received_bytes) || 0, Number(event.total_bytes) || 0]
  const name = what(event.packages)
  const sentence =
    event.phase === 'resolve'
      ? w.preparing
      : fill(event.phase === 'unpack' ? w.unpacking : event.phase === 'build' ? w.building : w.installing, {
          what: name,
        })
  return (
    <p className={css.progress} role="status">
      {sentence}
      {all > 0 && event.phase === 'download' && (
        <>
          <span className={css.amount}>
            {' · '}
            {fill(w.ofSize, { got: size(Math.min(got, all)), all: size(all) })}
          </span>
          <progress value={Math.min(got, all)} max={all} aria-label={sentence} />
        </>
      )}
    </p>
  )
}

export const Files = memo(function Files({
  files,
  onOpen,
}: {
  files: readonly FileEvent[]
  onOpen?: (path: string) => void
}) {
  const w = words()
  const [all, setAll] = useState(false)
  const shown = all ? files : files.slice(0, 12)
  return (
    <ul className={css.files} aria-label={w.files}>
      {shown.map((f) => {
        const Icon = f.created ? FilePlus : FileText
        const about = (
          <>
            <Icon size={14} aria-hidden />
            <bdi>{plain(f.path, 60)}</bdi>
            <small>
              {size(f.size)} · {f.created ? w.created : w.changed}
            </small>
          </>
        )
        return (
          <li key={f.path}>
            {onOpen ? (
              <button type="button" className={css.chip} onClick={() => onOpen(f.path)} title={plain(f.path, 500)}>
                {about}
              </button>
            ) : (
              <span className={css.chip} title={plain(f.path, 500)}>
                {about}
              </span>
            )}
          </li>
        )
      })}
      {files.length > shown.length && (
        <li>
          <button type="button" className={css.chip} onClick={() => setAll(true)}>
            {fill(w.moreFiles, { n: files.length - shown.length })}
          </button>
        </li>
      )}
    </ul>
  )
})

export const Rollback = memo(function Rollback({ event }: { event: RollbackEvent }) {
  const w = words()
  const time = event.to ? new Date(event.to) : null
  const lost = (Array.isArray(event.executions) ? event.executions.length : 0) + (Number(event.more_executions) || 0)
  const paths = Array.isArray(event.files) ? event.files : []
  const when = new Intl.DateTimeFormat(document.documentElement.lang || 'en', {
    dateStyle: 'medium',
    timeStyle: 'short',
  })
  return (
    <section className={css.rollback}>
      <p>
        {time && !Number.isNaN(time.getTime()) ? fill(w.rollbackTo, { time: when.format(time) }) : w.rollbackAnew}{' '}
        {lost === 1 && w.rollbackLostOne}
        {lost > 1 && fill(w.rollbackLost, { n: lost })}
      </p>
      {event.reason && <p className={css.why}>{plain(event.reason, 500)}</p>}
      {paths.length > 0 && (
        <p className={css.why}>
          {fill(w.rollbackFiles, {
            files:
              paths
                .slice(0, 8)
                .map((p) => plain(p, 80))
                .join(', ') + (paths.length > 8 ? ` +${number(paths.length - 8)}` : ''),
          })}
        </p>
      )}
    </section>
  )
})

/** Outcomes of which the words here say all that the server's own message does. */
const told = ['out_of_memory', 'timeout', 'interrupted', 'kernel_died', 'lost']

/** How an execution ended, in a sentence, with the limit that it met. */
function sentenceOf(event: DoneEvent, w: Words): string {
  const key = `o_${event.outcome}`
  const plainly = key in w ? w[key as keyof Words] : fill(w.o_other, { outcome: plain(event.outcome, 60) })
  const message = plain(event.message, 1000)
  if (event.outcome === 'out_of_memory') {
    const limit = /\b(\d{1,9} MiB)\b/.exec(message)?.[1]
    return limit ? fill(w.o_out_of_memory_of, { limit }) : plainly
  }
  if (event.outcome === 'timeout') {
    const limit = /\blonger than ([\d.]+[a-zµ]+[\da-z.]*)/.exec(message)?.[1]
    return limit ? fill(w.o_timeout_of, { limit }) : plainly
  }
  if (event.outcome === 'kernel_died' && event.signal) return `${plainly} (${plain(event.signal, 20)})`
  return message && !told.includes(event.outcome) ? `${plainly} ${message}` : plainly
}

interface Told {
  code?: string | undefined
  message?: string | undefined
  hint?: string | undefined
}

/** Why something was not installed, and what the program that installs said itself. */
function Why({ code, message, hint }: Told) {
  const { what, todo, detail } = explain({
    code: plain(code, 60),
    message: plain(message, 500),
    hint: plain(hint, 500),
  })
  return (
    <>
      {what && ` · ${what}`}
      {todo && <span>{todo}</span>}
      {detail && <small className={css.why}>{detail}</small>}
    </>
  )
}

export const Done = memo(function Done({ event, error }: { event: DoneEvent; error: boolean }) {
  const w = words()
  const dropped = Number(event.dropped_bytes) || 0
  const quiet = event.outcome === 'ok' || (event.outcome === 'error' && error)
  if (quiet && dropped === 0 && !event.lost) return null
  return (
    <section className={css.done}>
      {!quiet && (
        <p>
          {sentenceOf(event, w)}
          {event.outcome === 'error' && event.exit_code && !event.message
            ? ` ${fill(w.exitCode, { n: event.exit_code })}`
            : ''}
        </p>
      )}
      {event.lost && <p>{event.lost === 'session' ? w.lostSession : w.lostKernel}</p>}
      {dropped > 0 && <p className={css.why}>{fill(w.dropped, { size: size(dropped) })}</p>}
    </section>
  )
})
