import { useQuery } from '@tanstack/react-query'
import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { client, data, type Execution, insist, once, pages, type Turn } from '../api/client'
import { refresh } from '../api/queries'
import { restartPython } from '../panels/SessionPanel'
import { widgetCode } from '../panels/widgets'
import { complain, toast } from '../parts'
import { useWords } from '../words'
import { at, type Cell, change, insert, merge, move, runnable, stale, turnInto } from './cells'
import type { Command } from './keys'

const place = (session: string) => `cove.cells.${session}`

interface Kept {
  cells: Cell[]
  known: string[]
  /** Cells that ran up to then ran before Python was started anew. */
  restart: number
}

function read(session: string): Kept {
  try {
    const kept = JSON.parse(localStorage.getItem(place(session)) ?? 'null') as Partial<Kept> | null
    return { cells: kept?.cells ?? [], known: kept?.known ?? [], restart: kept?.restart ?? 0 }
  } catch {
    return { cells: [], known: [], restart: 0 }
  }
}

const executionsOf = (session: string) =>
  pages<Execution>((after) =>
    data(
      client.GET('/sessions/{session}/executions', {
        params: { path: { session }, query: { order: 'oldest', limit: 100, ...(after ? { after } : {}) } },
      }),
    ),
  )

let counter = 0
const fresh = (kind?: 'markdown'): Cell => ({
  key: `n${Date.now()}${counter++}`,
  ...(kind ? { kind } : {}),
  code: '',
  ran: '',
  execution: '',
  at: 0,
})
const latest = (cells: readonly Cell[]) => Math.max(0, ...cells.map((c) => c.at))

/** Which cell has the attention, and whether it is edited. */
export interface Focus {
  key: string
  edit: boolean
}

export type Act = (
  what: Command | 'change' | 'focus' | 'choose' | 'over' | 'from' | 'fold',
  key: string,
  detail?: string,
) => void

/** The cells of a session: what ran in it, and what was written beside. */
export function useCells(session: string, turns: readonly Turn[] | undefined) {
  const w = useWords()
  const [kept] = useState(() => read(session))
  const [cells, setCells] = useState<Cell[] | null>(null)
  // Cells of which the execution is being asked for, and executions that are known to be over before the list says so.
  const [starting, setStarting] = useState<ReadonlySet<string>>(new Set())
  const [ended, setEnded] = useState<ReadonlySet<string>>(new Set())
  const [waiting, setWaiting] = useState<readonly string[]>([])
  const [focus, setFocus] = useState<Focus>({ key: '', edit: false })
  const [removed, setRemoved] = useState<{ cell: Cell; index: number }[]>([])
  const [restart, setRestart] = useState(kept.restart)
  const known = useRef(new Set(kept.known))
  const now = useRef<Cell[]>([])
  now.current = cells ?? []
  const line = useRef<string[]>([])
  const sessions = useMemo(
    () => [...new Set([...(turns ?? []).flatMap((t) => t.session ?? []), session])],
    [turns, session],
  )
  const ids = useMemo(() => new Set(turns?.map((t) => t.id)), [turns])
  const list = useQuery({
    queryKey: ['executions', session, sessions.join(' '), ids.size],
    queryFn: async () => {
      const ran = await Promise.all(sessions.map(executionsOf))
      // A branch has a session of its own, and goes on from what ran for the turns before it.
      const cells = ran.flat().filter((e) => !e.code.startsWith(widgetCode))
      return cells.filter((e) => (e.turn ? !turns || ids.has(e.turn) : e.session === session))
    },
  })

  useEffect(() => {
    if (!list.data) return
    const before = new Set(known.current)
    setCells((old) => {
      const merged = merge(old ?? kept.cells, list.data, before)
      if (merged.length) return merged
      return old?.length ? old : [fresh()]
    })
    for (const e of list.data) known.current.add(e.id)
  }, [list.data, kept])

  const busy = useMemo(() => {
    const going = new Set(
      (list.data ?? []).filter((e) => e.state === 'running' || e.state === 'queued').map((e) => e.id),
    )
    const is = (c: Cell) => starting.has(c.key) || (going.has(c.execution) && !ended.has(c.execution))
    return new Set((cells ?? []).filter(is).map((c) => c.key))
  }, [cells, list.data, starting, ended])
  const running = useRef(busy)
  running.current = busy

  useEffect(() => {
    if (!cells) return
    try {
      localStorage.setItem(place(session), JSON.stringify({ cells, known: [...known.current].slice(-500), restart }))
    } catch {
      // Storage is full: the order of the cells is known until the page is left.
    }
  }, [cells, session, restart])

  const edit = useCallback((f: (cells: Cell[]) => Cell[]) => setCells((all) => f(all ?? [])), [])
  const wait = useCallback((keys: string[]) => {
    line.current = keys
    setWaiting(keys)
  }, [])

  const run = useCallback(
    async (key: string) => {
      const cell = now.current.find((c) => c.key === key)
      if (!cell?.code.trim() || cell.kind) return
      setStarting((b) => new Set(b).add(key))
      const headers = once()
      try {
        const made = (await insist(() =>
          data(
            client.POST('/sessions/{session}/executions', {
              params: { path: { session }, query: { background: true }, header: headers },
              body: { code: cell.code, approved: true, input: true, widgets: true }, // a person has looked at it
            }),
          ),
        )) as Execution
        known.current.add(made.id)
        edit((all) => change(all, key, { ran: cell.code, execution: made.id, session, at: latest(all) + 1 }))
      } catch (error) {
        complain(error)
        wait([])
        setStarting((b) => new Set([...b].filter((k) => k !== key)))
      }
    },
    [session, edit, wait],
  )

  /** Runs cells one after the other, as long as none fails. */
  const runAll = useCallback(
    (keys: string[]) => {
      const [first, ...rest] = keys
      wait(rest)
      if (first) void run(first)
    },
    [run, wait],
  )

  const over = useCallback(
    (key: string, outcome: string) => {
      // Those of earlier are read again when the page is opened, and are no news.
      if (!running.current.has(key)) return
      const id = now.current.find((c) => c.key === key)?.execution
      setStarting((b) => new Set([...b].filter((k) => k !== key)))
      if (id) setEnded((all) => new Set(all).add(id))
      refresh({ session })
      const next = line.current[0]
      if (!next) return
      if (outcome === 'ok') {
        wait(line.current.slice(1))
        void run(next)
      } else {
        toast(w.notebook.stoppedHere(line.current.length))
        wait([])
      }
    },
    [run, session, wait, w],
  )

  const interrupt = useCallback(() => {
    wait([])
    for (const c of now.current)
      if (running.current.has(c.key) && c.execution)
        void data(
          client.POST('/executions/{execution}/interrupt', { params: { path: { execution: c.execution } } }),
        ).catch(complain)
  }, [wait])

  const anew = useCallback(
    async (then: boolean) => {
      wait([])
      if (!(await restartPython(session, w, then))) return
      setRestart(latest(now.current))
      if (then) runAll(runnable(now.current))
    },
    [session, w, runAll, wait],
  )

  const add = useCallback(
    (index: number, kind?: 'markdown') => {
      const made = fresh(kind)
      edit((all) => insert(all, index, made))
      setFocus({ key: made.key, edit: true })
    },
    [edit],
  )

  const undo = useCallback(() => {
    const last = removed.at(-1)
    if (!last) return
    setRemoved(removed.slice(0, -1))
    edit((all) => insert(all, last.index, last.cell))
    setFocus({ key: last.cell.key, edit: false })
  }, [removed, edit])

  const remove = useCallback(
    (key: string) => {
      const index = at(now.current, key)
      const cell = now.current[index]
      if (!cell) return
      const rest = now.current.filter((c) => c.key !== key)
      const left = rest.length ? rest : [fresh()]
      if (cell.code.trim() || cell.execution) setRemoved((all) => [...all.slice(-19), { cell, index }])
      edit(() => left)
      setFocus({ key: left[Math.min(index, left.length - 1)]?.key ?? '', edit: false })
    },
    [edit],
  )

  const act = useCallback<Act>(
    (what, key, detail) => {
      const index = at(now.current, key)
      const go = (to: number) => {
        const other = now.current[to]
        if (other) setFocus({ key: other.key, edit: false })
      }
      const acts: Record<string, () => void> = {
        change: () => edit((all) => change(all, key, { code: detail ?? '' })),
        focus: () => setFocus({ key, edit: true }),
        edit: () => setFocus({ key, edit: true }),
        choose: () => setFocus({ key, edit: false }),
        fold: () => setFocus({ key, edit: false }),
        over: () => over(key, detail ?? ''),
        from: () => runAll(runnable(now.current, index)),
        run: () => {
          void run(key)
          setFocus({ key, edit: false })
        },
        next: () => {
          void run(key)
          if (index + 1 < now.current.length) go(index + 1)
          else add(index + 1)
        },
        insert: () => {
          void run(key)
          add(index + 1)
        },
        up: () => go(index - 1),
        down: () => go(index + 1),
        above: () => add(index),
        below: () => add(index + 1),
        moveUp: () => edit((all) => move(all, key, -1)),
        moveDown: () => edit((all) => move(all, key, 1)),
        markdown: () => edit((all) => turnInto(all, key, 'markdown')),
        python: () => edit((all) => turnInto(all, key, undefined)),
        remove: () => remove(key),
        undo,
        stop: interrupt,
        restart: () => void anew(false),
      }
      acts[what]?.()
    },
    [add, anew, edit, interrupt, over, remove, run, runAll, undo],
  )

  const old = useMemo(() => stale(cells ?? [], restart), [cells, restart])
  return {
    cells: cells ?? [],
    busy,
    waiting,
    focus,
    old,
    act,
    removed: removed.length,
    undo,
    interrupt,
    anew,
    error: list.error,
    reload: () => void list.refetch(),
    runAll: () => runAll(runnable(now.current)),
    append: (kind?: 'markdown') => add(now.current.length, kind),
  }
}
