import { ArrowDown, MessagesSquare, SquareTerminal } from 'lucide-react'
import { Fragment, lazy, Suspense, useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { useLocation, useSearchParams } from 'wouter'
import type { Queued, Turn } from '../api/client'
import { asProblem } from '../api/problem'
import { refresh, titleOf, useConversation, useQueue, useSession, useTurns } from '../api/queries'
import { Charting } from '../chart/Charting'
import { ChartStep } from '../chart/ChartStep'
import { chartInstructions, withCharts } from '../chart/quote'
import { useOwnCharts } from '../chart/run'
import { attached, restore } from '../composer/attachments'
import { Composer, type ComposerHandle, type Question } from '../composer/Composer'
import { DropZone } from '../composer/DropZone'
import { onTurnOver, turnLive, useWaits } from '../events/live'
import { Figures } from '../output'
import { Panels } from '../panels/Panels'
import { complain, IconButton, ProblemBox, parts, Segments } from '../parts'
import { isMod, usePageKeys } from '../parts/keys'
import { ShareMenu } from '../share/ShareMenu'
import { Page } from '../shell/Page'
import { useWords } from '../words'
import { type Approval, askAgain, askQuestion, goBack, goOnAfter, putQuestion, setApproval, stopTurn } from './actions'
import { answerAnew } from './anew'
import { ContextMeter } from './ContextMeter'
import css from './conversation.module.css'
import { ForkedFrom } from './ForkedFrom'
import { forkConversation } from './fork'
import { LinkBar } from './LinkBar'
import { outdatedOf, undoneOf } from './marks'
import { useOffer } from './offer'
import { Queue } from './Queue'
import { Rollback, savedAs, tellerOf } from './Rollback'
import { StepsContext, useTurnsHere } from './reruns'
import { TurnItem } from './Turn'
import { branchThrough, isTry, versionsOf } from './tree'
import { Undone, useUndoFocus } from './Undone'
import { useBottom } from './useBottom'

const Notebook = lazy(() => import('../notebook/Notebook'))
const PrintView = lazy(() => import('../print/PrintView'))

const window_ = 30
const none: Queued[] = []
const noTurns: Turn[] = []
const isRunning = (t: Turn) => t.state === 'running'

export function ConversationPage({ id }: { id: string }) {
  const w = useWords()
  const [, navigate] = useLocation()
  const [search, setSearch] = useSearchParams()
  const conversation = useConversation(id)
  const turns = useTurns(id)
  const through = search.get('turn')
  const notebook = search.get('view') === 'notebook'
  const [shown, setShown] = useState(window_)
  const [editing, setEditing] = useState<string | null>(null)
  const [said, setSaid] = useState('')
  const [printing, setPrinting] = useState(false)
  const composer = useRef<ComposerHandle>(null)
  const queue = useQueue(id).data ?? none
  const all = useTurnsHere(turns.data ?? noTurns)
  const branch = useMemo(() => branchThrough(all, through), [all, through])
  const title = titleOf(conversation.data, branch[0]?.prompt.slice(0, 80) || w.nav.untitled)
  const current = all.find((t) => isRunning(t) && !isTry(t)) ?? null
  const last = branch.at(-1)
  const session = last?.undone?.session ?? last?.session ?? conversation.data?.session
  const { box, atEnd, toEnd } = useBottom(branch.length)
  const charts = useOwnCharts(branch, session)
  const quoted = useCallback(
    (question: Question) => ({ ...question, text: withCharts(question.text, charts.get(last?.id ?? '') ?? [], w) }),
    [charts, last, w],
  )

  useEffect(
    () =>
      onTurnOver((turn, end) => {
        const known = all.find((t) => t.id === turn)
        setSaid(w.turn.ends[end])
        if (known) refresh({ conversation: id, ...(known.session ? { session: known.session } : {}) })
      }),
    [all, id, w],
  )

  const ask = useCallback(
    async (question: Question) => {
      const end = last
      const said = quoted(question)
      const asked = await askQuestion(said, id, {
        ...(end ? { parent: end.id, ...(session ? { session } : {}) } : {}),
        ...(said.text !== question.text ? { instructions: chartInstructions } : {}),
      })
      setSaid(w.turn.started)
      setSearch({ turn: asked.id }, { replace: true })
      toEnd()
    },
    [id, last, quoted, session, setSearch, toEnd, w],
  )

  // One that is held waits for somebody; what is asked meanwhile need not.
  const queues = !!current || (queue.length > 0 && !queue[0]?.held)
  const onSend = useCallback(
    (question: Question) =>
      void (queues ? putQuestion(current ? question : quoted(question), id) : ask(question)).catch((error) => {
        complain(error, w.composer.notQueued)
        restore(id, question.files)
        composer.current?.fill(question.text)
      }),
    [id, queues, current, quoted, ask, w],
  )
  const onStop = useCallback(() => current && void stopTurn(current), [current])
  const onEditQueued = useCallback(
    (q: Queued) => {
      restore(id, attached(q.files))
      composer.current?.fill(q.prompt)
    },
    [id],
  )
  const onApproval = useCallback((to: Approval) => void setApproval(id, to), [id])
  const onUp = useCallback(() => last && !current && setEditing(last.id), [last, current])

  const setMoved = useUndoFocus(last)
  const actions = useMemo(
    () => ({
      again: async (turn: Turn, text: string) => {
        setEditing(null)
        try {
          const asked = await askAgain(turn, text, w)
          setSearch({ turn: asked.id })
          toEnd()
        } catch (error) {
          complain(error)
        }
      },
      fork: (turn: Turn) => void forkConversation(turn, title, w).then((made) => made && navigate(`/c/${made.id}`)),
      back: async (turn: Turn) => {
        const later = branch.length - branch.findIndex((t) => t.id === turn.id)
        if (!last || !(await goBack(turn, branch, w))) return
        setSaid(w.turn.undone(later))
        setMoved({ turn: last.id, undone: true })
      },
      redo: async (turn: Turn) => {
        if (!(await goOnAfter(turn))) return
        setSaid(w.turn.redone)
        setMoved({ turn: turn.id, undone: false })
      },
      anew: async (turn: Turn) => {
        try {
          const asked = await answerAnew(turn, branch, session ?? '', w)
          if (asked) setSearch({ turn: asked.id })
        } catch (error) {
          complain(error)
        }
      },
      show: (turn: string) => setSearch({ turn }),
    }),
    [branch, last, session, navigate, setSearch, setMoved, title, toEnd, w],
  )

  const escaped = useRef(0)
  usePageKeys((e) => {
    if (printing) return
    if (isMod(e) && e.code === 'KeyP' && !e.shiftKey && !e.altKey && !notebook && last) {
      e.preventDefault()
      setPrinting(true)
    }
    if (e.key === 'Escape' && current) {
      if (e.timeStamp - escaped.current < 700) onStop()
      escaped.current = e.timeStamp
    }
    if (e.altKey && (e.key === 'ArrowUp' || e.key === 'ArrowDown')) {
      e.preventDefault()
      const items = [...document.querySelectorAll<HTMLElement>('[data-turn]')]
      const at = items.findIndex((i) => i.contains(document.activeElement))
      const next = items[at < 0 ? items.length - 1 : at + (e.key === 'ArrowUp' ? -1 : 1)]
      next?.focus()
      next?.scrollIntoView({ block: 'start' })
    }
  })

  const steps = useMemo(() => {
    const ran = branch.filter((t) => t.last_event > 0)
    return { session, turns: ran, ids: ran.map((t) => t.id), busy: !!current }
  }, [branch, session, current])

  const outdated = useMemo(() => outdatedOf(branch), [branch])
  const undone = useMemo(() => undoneOf(branch), [branch])

  const failed = turns.error ?? conversation.error
  const visible = branch.slice(-shown)
  const lastCopied = branch.findLast((t) => t.origin)?.id
  const rollback = useSession(session).data?.rollback
  const teller = tellerOf(branch, session, rollback)
  const link = current ? turnLive(current.id, true) : null
  const waits = useWaits(link)
  const offer = useOffer(session, branch, queues)

  return (
    <Charting session={session} after={last?.id} busy={!!current}>
      <Page
        title={title}
        tab={waits ? w.approval.tab(title) : undefined}
        panels={<Panels session={session} />}
        actions={
          <>
            <Segments
              label={w.view.label}
              value={notebook ? 'notebook' : 'conversation'}
              options={[
                { id: 'conversation', name: w.view.conversation, icon: <MessagesSquare size={18} aria-hidden /> },
                { id: 'notebook', name: w.view.notebook, icon: <SquareTerminal size={18} aria-hidden /> },
              ]}
              onChange={(view) =>
                setSearch((now) => {
                  const next = new URLSearchParams(now)
                  if (view === 'notebook') next.set('view', view)
                  else next.delete('view')
                  return next
                })
              }
            />
            <ShareMenu
              conversation={id}
              title={title}
              branch={branch}
              onFork={actions.fork}
              onPrint={() => setPrinting(true)}
            />
          </>
        }
      >
        {notebook ? (
          <Suspense fallback={<p className={css.quiet}>{w.loading}</p>}>
            {session ? (
              <Notebook session={session} turns={branch} />
            ) : (
              <p className={css.quiet}>{w.notebook.noSession}</p>
            )}
          </Suspense>
        ) : (
          <>
            <div className={css.scroll} ref={box}>
              <div className={css.column}>
                {failed && (
                  <ProblemBox
                    error={asProblem(failed)}
                    onRetry={() => void Promise.all([turns.refetch(), conversation.refetch()])}
                  />
                )}
                {turns.isPending && <p className={css.quiet}>{w.loading}</p>}
                {branch.length > visible.length && (
                  <button
                    type="button"
                    data-earlier
                    className={css.earlier}
                    onClick={() => setShown((n) => n + window_)}
                  >
                    {w.turn.earlier(branch.length - visible.length)}
                  </button>
                )}
                <Figures>
                  <StepsContext value={steps}>
                    {visible.map((t) => (
                      <Fragment key={t.id}>
                        <TurnItem
                          turn={t}
                          versions={versionsOf(all, t)
                            .map((s) => s.id)
                            .join(' ')}
                          busy={!!current}
                          editing={editing === t.id}
                          onEdit={setEditing}
                          actions={actions}
                          outdated={outdated.has(t.id)}
                          undone={undone.has(t.id)}
                          saved={rollback && teller === t.id ? savedAs(rollback, w) : ''}
                        />
                        {charts.get(t.id)?.map((c) => (
                          <ChartStep
                            key={c.id}
                            chart={c}
                            session={session}
                            busy={!!current}
                            undone={undone.has(t.id) && c.versions[0]?.execution.session !== t.undone?.session}
                          />
                        ))}
                        {t.undone && undone.has(t.id) && (
                          <Undone
                            turn={t}
                            questions={branch.indexOf(t) - branch.findIndex((b) => b.id === t.undone?.from) + 1}
                            onRedo={t === last && !current ? () => void actions.redo(t) : undefined}
                          />
                        )}
                        {t.id === lastCopied && <ForkedFrom origin={conversation.data?.origin} />}
                      </Fragment>
                    ))}
                  </StepsContext>
                </Figures>
              </div>
            </div>
            <p className={parts.hidden} role="status">
              {said}
            </p>
            <div className={css.dock}>
              {!atEnd && (
                <IconButton label={w.turn.toEnd} className={css.toEnd} onClick={() => toEnd(true)}>
                  <ArrowDown size={18} aria-hidden />
                </IconButton>
              )}
              <LinkBar live={link} />
              {session && !teller && <Rollback session={session} rollback={rollback} />}
              <Queue queue={queue} onEdit={onEditQueued} />
              <Composer
                ref={composer}
                scope={id}
                busy={!!current}
                onSend={onSend}
                onStop={onStop}
                onUp={onUp}
                placeholder={w.composer.next}
                autoFocus
                approval={conversation.data?.approval ?? null}
                onApproval={onApproval}
                offer={offer}
              />
              <ContextMeter branch={branch} />
            </div>
            <DropZone scope={id} />
          </>
        )}
        {printing && (
          <Suspense fallback={null}>
            <PrintView
              title={title}
              branch={branch}
              created={branch[0]?.created_at}
              charts={charts}
              onClose={() => setPrinting(false)}
            />
          </Suspense>
        )}
      </Page>
    </Charting>
  )
}
