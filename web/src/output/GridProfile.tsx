import css from './grid.module.css'
import { byType } from './sheet'
import type { Kind } from './table'
import type { Known } from './view'
import { compact, fill, plain, share, words } from './words'

const height = 28

/** Both ends of a range have to go into one column; all digits are in its title. */
function brief(t: string): string {
  if (!/^-?\d+(\.\d+)?(e[+-]?\d+)?$/.test(t)) return t
  if (Math.abs(Number(t)) >= 1e6) return compact(Number(t))
  return /\.\d{3,}|e/.test(t) ? String(Number(Number(t).toPrecision(3))) : t
}

export function ProfileCell({ known, kind }: { known: Known | null; kind: Kind }) {
  const w = words()
  if (!known || 'failed' in known) {
    return (
      <div className={css.profile} title={known ? known.failed : undefined}>
        <svg className={css.bars} viewBox={`0 0 100 ${height}`} aria-hidden="true" />
        <span>{known ? w.notKnown : w.counting}</span>
      </div>
    )
  }
  const { profile: p, partly } = known
  const most = Math.max(1, ...p.bars)
  const step = 100 / Math.max(1, p.bars.length)
  const [min, max] = [brief(p.min), brief(p.max)]
  const range = min === '' ? '' : min === max ? min : fill(w.range, { min, max })
  const common = !p.top ? '' : p.top.part > 0 ? `${plain(p.top.value, 60)} · ${share(p.top.part)}` : w.eachOnce
  const distinct = fill(w.distinct, { n: p.distinct })
  return (
    <div
      className={css.profile}
      title={[
        p.type,
        p.min ? fill(w.range, { min: p.min, max: p.max }) : common,
        distinct,
        partly ? fill(w.firstRows, { n: partly }) : '',
      ]
        .filter(Boolean)
        .join(' · ')}
    >
      <svg className={css.bars} viewBox={`0 0 100 ${height}`} preserveAspectRatio="none" aria-hidden="true">
        {p.bars.map((n, i) => {
          const tall = n === 0 ? 0 : Math.max(1, (n / most) * height)
          return (
            // biome-ignore lint/suspicious/noArrayIndexKey: bars have no other name
            <rect key={i} x={i * step} y={height - tall} width={step * 0.86} height={tall} />
          )
        })}
      </svg>
      <span>{w[`t_${byType(p.type ?? '') ?? kind}`]}</span>
      <span>{range || common}</span>
      <span data-some={p.missing > 0 || undefined}>{p.missing > 0 ? fill(w.missing, { n: p.missing }) : distinct}</span>
    </div>
  )
}
