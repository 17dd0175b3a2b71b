import { CircleAlert, Info, TriangleAlert } from 'lucide-react'
import { number, plain } from '../output'
import { useWords } from '../words'
import type { Finding } from './check'
import css from './checks.module.css'

const icons = { error: CircleAlert, warning: TriangleAlert, note: Info }
const most = 200

/** What a check found. Its texts are from tools in the sandbox. */
export function Findings({ items, notes }: { items: readonly Finding[]; notes: readonly string[] }) {
  const w = useWords()
  return (
    <>
      <ul className={css.findings}>
        {items.slice(0, most).map((f, i) => {
          const Icon = icons[f.severity] ?? Info
          return (
            // biome-ignore lint/suspicious/noArrayIndexKey: the list does not change, and two findings may be the same
            <li key={i} data-severity={f.severity}>
              <Icon size={15} role="img" aria-label={w.checks.severity[f.severity] ?? ''} />
              <div>
                <p>
                  <span className={css.place}>
                    {f.cell ? `${w.preview.cell(f.cell)}, ` : ''}
                    {w.checks.line(f.line)}
                  </span>{' '}
                  <bdi>{plain(f.message, 1000)}</bdi> <span className={css.rule}>{plain(f.rule, 80)}</span>
                </p>
                {f.better && (
                  <p className={css.better}>
                    {w.checks.better} <bdi>{plain(f.better, 1000)}</bdi>
                  </p>
                )}
                {f.measured && f.measured.fast > 0 && (
                  <p className={css.better}>
                    {w.checks.measured(number(f.measured.size), times(f.measured.slow / f.measured.fast))}
                  </p>
                )}
              </div>
            </li>
          )
        })}
      </ul>
      {items.length > most && <p className={css.note}>{w.preview.more(items.length - most)}</p>}
      {notes.map((n) => (
        <p key={n} className={css.note}>
          {plain(n, 1000)}
        </p>
      ))}
    </>
  )
}

const times = (ratio: number) => number(ratio < 10 ? Math.round(ratio * 10) / 10 : Math.round(ratio))
