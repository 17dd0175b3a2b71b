// The events of an execution, as docs/events.md has them. All of it but install, install_progress, rollback and the
// measured fields of done comes from the sandbox: every reader of these types checks what it takes.

export type Mime = Record<string, unknown>

export interface StreamEvent {
  type: 'stream'
  name: 'stdout' | 'stderr'
  text?: string
  data?: string
}

export interface DisplayEvent {
  type: 'display'
  data: Mime
  metadata?: Mime
  id?: string
  update?: boolean
}

export interface ResultEvent {
  type: 'result'
  count?: number
  data: Mime
  metadata?: Mime
}

export interface ErrorEvent {
  type: 'error'
  name: string
  value: string
  traceback?: string[]
  hint?: string
}

export interface ClearEvent {
  type: 'clear_output'
  wait?: boolean
}

export interface FileEvent {
  type: 'file'
  path: string
  size: number
  created?: boolean
}

export interface InstalledPackage {
  name: string
  version?: string
  size?: number
  asked?: boolean
  module?: string
  reason?: string
}

export interface RefusedPackage {
  name: string
  code?: string
  reason?: string
  hint?: string
}

export interface InstallEvent {
  type: 'install'
  packages?: InstalledPackage[] | null
  seconds?: number
  cached?: boolean
  refused?: RefusedPackage[] | null
  notes?: string[] | null
  restarted?: boolean
  needs_restart?: string
  failure?: { kind?: string; code?: string; message?: string; hint?: string } | null
}

export interface ProgressEvent {
  type: 'install_progress'
  phase: string
  packages?: (string | { name: string; version?: string })[] | null
  received_bytes?: number
  total_bytes?: number
}

export interface RollbackEvent {
  type: 'rollback'
  at?: string | null
  to?: string | null
  reason?: string
  executions?: string[] | null
  more_executions?: number
  files?: string[] | null
}

export interface InputRequestEvent {
  type: 'input_request'
  number: number
  prompt: string
  password?: boolean
}

export interface InputReplyEvent {
  type: 'input_reply'
  number: number
  /** Not of a password. */
  text?: string
  ended?: boolean
}

export interface WidgetsEvent {
  type: 'widgets'
  models?: unknown
  closed?: unknown
}

export interface DoneEvent {
  type: 'done'
  outcome: string
  exit_code?: number
  seconds?: number
  signal?: string
  message?: string
  lost?: 'kernel' | 'session'
  dropped_bytes?: number
}

export type OutputEvent =
  | StreamEvent
  | DisplayEvent
  | ResultEvent
  | ErrorEvent
  | ClearEvent
  | FileEvent
  | InstallEvent
  | ProgressEvent
  | RollbackEvent
  | InputRequestEvent
  | InputReplyEvent
  | WidgetsEvent
  | DoneEvent

export type Theme = 'light' | 'dark'

/** The address of a file of the workspace that an answer shows as a picture, or null. */
export type Files = (path: string) => string | null
