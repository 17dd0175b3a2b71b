import type { Caller } from '../../api/client'

export type Right =
  | 'sessions:read'
  | 'sessions:write'
  | 'sessions:execute'
  | 'conversations:read'
  | 'models:read'
  | 'usage:read'
  | 'keys:manage'
  | 'users:manage'
  | 'audit:read'
  | 'server:manage'

const reading: Right[] = ['sessions:read', 'conversations:read', 'models:read', 'usage:read']
const working: Right[] = [...reading, 'sessions:write', 'sessions:execute']
const ruling: Right[] = [...working, 'keys:manage', 'users:manage', 'audit:read', 'server:manage']

const rights: Record<string, Right[]> = {
  owner: ruling,
  admin: ruling,
  member: [...working, 'keys:manage'],
  viewer: reading,
  auditor: ['usage:read', 'audit:read'],
}

/** Whether the caller has a right, as far as the page can know. The server decides. */
export function may(who: Caller, right: Right): boolean {
  if (right === 'server:manage' && !who.admin) return false
  return (rights[who.role]?.includes(right) ?? false) && (!who.scopes || who.scopes.includes(right))
}

export const sections = [
  'keys',
  'usage',
  'sessions',
  'models',
  'server',
  // What is not for somebody who is alone comes last, so that nothing else moves when it appears.
  'projects',
  'users',
  'audit',
] as const
export type Section = (typeof sections)[number]

const needs: Record<Section, Right | null> = {
  projects: 'users:manage',
  users: 'server:manage',
  keys: 'keys:manage',
  usage: 'usage:read',
  audit: 'audit:read',
  sessions: 'sessions:read',
  models: 'models:read',
  server: null,
}

export const mayOpen = (who: Caller, section: Section) => {
  const need = needs[section]
  return need === null || may(who, need)
}

// What is of use to somebody who is alone on a server.
const alone: readonly Section[] = ['keys', 'usage', 'sessions', 'models', 'server']

/** The sections that the side list has; all says that other people and projects are of interest. */
export const shownTo = (who: Caller, all: boolean): Section[] =>
  sections.filter((s) => mayOpen(who, s) && (all || !mayOpen(who, 'users') || alone.includes(s)))
