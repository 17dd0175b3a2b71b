import { useMemo } from 'react'
import type { Turn } from '../api/client'
import { count, percent } from '../parts/format'
import { useWords } from '../words'
import { fillOf } from './context'
import css from './context.module.css'

/** How full the model's context is. It is quiet until little is left. */
export function ContextMeter({ branch }: { branch: readonly Turn[] }) {
  const w = useWords()
  const fill = useMemo(() => fillOf(branch), [branch])
  if (!fill) return null
  const part = percent(fill.part, w.lang)
  return (
    <p className={css.context} data-warn={fill.warn || undefined}>
      <span className={css.bar} aria-hidden>
        <span style={{ inlineSize: `${Math.min(100, fill.part * 100)}%` }} />
      </span>
      <span>{w.context.used(part, count(fill.size, w.lang))}</span>
      {fill.warn && <span>{w.context.warning}</span>}
    </p>
  )
}
