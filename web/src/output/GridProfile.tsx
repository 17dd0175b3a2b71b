import css from './grid.module.css'
import type { Known } from './view'
import { fill, words } from './words'

const height = 28

/** Both ends of a range have to go into one column. */
const brief = (t: string) => (/^-?\d+\.\d{3,}(e[+-]?\d+)?$/.test(t) ? String(Number(Number(t).toPrecision(3))) : t)

export function ProfileCell({ known }: { known: Known | null }) {
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
  return (
    <div
      className={css.profile}
      title={[range, partly ? fill(w.firstRows, { n: partly }) : ''].filter(Boolean).join(' · ')}
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
      <span>{p.type || w[`t_${p.kind}`]}</span>
      <span>{range || fill(w.distinct, { n: p.distinct })}</span>
      <span data-some={p.missing > 0 || undefined}>
        {p.missing > 0 ? fill(w.missing, { n: p.missing }) : fill(w.distinct, { n: p.distinct })}
      </span>
    </div>
  )
}
