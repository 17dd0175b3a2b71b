// The keys of a cell that is chosen but not edited, as Jupyter has them.

export type Command =
  | 'edit'
  | 'run'
  | 'next'
  | 'insert'
  | 'up'
  | 'down'
  | 'moveUp'
  | 'moveDown'
  | 'above'
  | 'below'
  | 'remove'
  | 'undo'
  | 'markdown'
  | 'python'
  | 'stop'
  | 'restart'

interface Pressed {
  key: string
  ctrlKey: boolean
  metaKey: boolean
  altKey: boolean
  shiftKey: boolean
}

const letters: Record<string, Command> = {
  a: 'above',
  b: 'below',
  m: 'markdown',
  y: 'python',
  z: 'undo',
  j: 'down',
  k: 'up',
}
const twice: Record<string, Command> = { d: 'remove', i: 'stop', 0: 'restart' }

/** The keys that do something by themselves, as aria-keyshortcuts names them. */
export const declared = (single: boolean, mod: string) =>
  [
    `Enter Shift+Enter ${mod}+Enter Alt+Enter ArrowUp ArrowDown Alt+ArrowUp Alt+ArrowDown`,
    ...(single ? Object.keys(letters) : []),
  ].join(' ')

/** What a key means; `before` is the key that was pressed a moment ago. Letters can be switched off. */
export function command(e: Pressed, before: string, single: boolean): Command | null {
  const mod = e.ctrlKey || e.metaKey
  if (e.key === 'Enter') return mod ? 'run' : e.shiftKey ? 'next' : e.altKey ? 'insert' : 'edit'
  if (e.key === 'ArrowUp' || e.key === 'ArrowDown') {
    if (mod || e.shiftKey) return null
    if (e.altKey) return e.key === 'ArrowUp' ? 'moveUp' : 'moveDown'
    return e.key === 'ArrowUp' ? 'up' : 'down'
  }
  if (!single || mod || e.altKey || e.shiftKey) return null
  if (before === e.key && twice[e.key]) return twice[e.key] ?? null
  return letters[e.key] ?? null
}
