import type { Turn } from '../api/client'

/** From which part on a full context is warned of. */
const warned = 0.8

export interface Fill {
  /** The part of what the model takes that was used, which is above 1 where the operator knows too little. */
  part: number
  size: number
  warn: boolean
}

/** How full the model's context was at the end of a branch; null where nobody knows its size. */
export function fillOf(branch: readonly Pick<Turn, 'context'>[]): Fill | null {
  const context = branch.findLast((t) => t.context)?.context
  if (!context?.size) return null
  const part = context.used / context.size
  return { part, size: context.size, warn: part >= warned }
}
