import { day } from '../../parts/format'
import { useWords } from '../../words'
import css from './bars.module.css'
import { roof } from './usage'

const width = 480
const height = 132
const left = 46
const bottom = 20
const top = 8

export interface Series {
  title: string
  days: string[]
  /** One or two numbers for each day; the second stands on the first. */
  values: number[][]
  text: (n: number) => string
}

/** Bars by day. What they say is also in the table of the page, for whom pictures do not help. */
export function Bars({ title, days, values, text }: Series) {
  const w = useWords()
  const sums = values.map((v) => v.reduce((a, b) => a + b, 0))
  const most = Math.max(0, ...sums)
  const high = roof(most)
  const total = sums.reduce((a, b) => a + b, 0)
  const step = (width - left) / Math.max(1, days.length)
  const bar = Math.max(1.5, Math.min(28, step * 0.7))
  const y = (n: number) => top + (height - top - bottom) * (1 - n / high)
  const short = new Intl.DateTimeFormat(w.lang, { month: 'short', day: 'numeric', timeZone: 'UTC' })
  const named = [0, Math.floor((days.length - 1) / 2), days.length - 1].filter((n, i, all) => all.indexOf(n) === i)
  const busiest = days[sums.indexOf(most)]
  const said = total
    ? `${w.admin.usage.bars(title)}: ${w.admin.usage.total(text(total))}, ${w.admin.usage.most(text(most), busiest ? day(busiest, w.lang) : '')}`
    : `${w.admin.usage.bars(title)}: ${w.usage.empty}`
  return (
    <figure className={css.plot}>
      <figcaption>
        <strong>{title}</strong>
        <span>{w.admin.usage.total(text(total))}</span>
      </figcaption>
      <svg viewBox={`0 0 ${width} ${height}`} role="img" aria-label={said}>
        {[0, high / 2, high].map((n) => (
          <g key={n}>
            <line x1={left} x2={width} y1={y(n)} y2={y(n)} />
            {(n !== high / 2 || Number.isInteger(n)) && (
              <text x={left - 8} y={y(n) + 4} textAnchor="end">
                {text(n)}
              </text>
            )}
          </g>
        ))}
        {values.map((parts, i) => {
          const x = left + i * step + (step - bar) / 2
          const whole = sums[i] ?? 0
          const first = parts[0] ?? 0
          return (
            <g key={days[i]}>
              <rect className={css.bar} x={x} width={bar} y={y(first)} height={y(0) - y(first)} />
              {whole > first && (
                <rect className={css.second} x={x} width={bar} y={y(whole)} height={y(first) - y(whole)} />
              )}
              <rect className={css.hover} x={left + i * step} width={step} y={top} height={y(0) - top}>
                <title>{`${day(days[i] ?? '', w.lang)}: ${parts.map(text).join(' + ')}`}</title>
              </rect>
            </g>
          )
        })}
        {named.map((n) => (
          <text
            key={n}
            x={left + n * step + step / 2}
            y={height - 4}
            textAnchor={n === 0 && days.length > 14 ? 'start' : n === days.length - 1 ? 'end' : 'middle'}
          >
            {short.format(new Date(days[n] ?? 0))}
          </text>
        ))}
      </svg>
    </figure>
  )
}
