import { useQuery } from '@tanstack/react-query'
import { ChevronLeft, ChevronRight, Download, ListChecks, MessageSquarePlus, X } from 'lucide-react'
import { lazy, Suspense, useEffect, useState } from 'react'
import { Dialog, Modal, ModalOverlay } from 'react-aria-components'
import { fileAddress } from '../api/base'
import { client, data } from '../api/client'
import { IconButton, ProblemBox } from '../parts'
import { bytes, plainName } from '../parts/format'
import { useWords } from '../words'
import { tellAbout } from './about'
import { PreviewBody } from './PreviewBody'
import css from './panels.module.css'

const CodeCheck = lazy(async () => ({ default: (await import('../checks/CodeCheck')).CodeCheck }))

/** Follows a link to a file, which the server sends as a download. */
export function load(address: string) {
  const link = document.createElement('a')
  link.href = address
  link.download = ''
  link.click()
}

interface Props {
  session: string
  /** The files around, in their order. */
  paths: readonly string[]
  path: string
  onPath: (path: string) => void
  onClose: () => void
}

const still = 'input, textarea, [contenteditable], [role=grid], [role=tab]'

/** What is in a file of the workspace, over the page. */
export function PreviewDialog({ session, paths, path, onPath, onClose }: Props) {
  const w = useWords()
  const [sheet, setSheet] = useState('')
  const [checked, setChecked] = useState('')
  const at = paths.indexOf(path)
  const before = at > 0 ? paths[at - 1] : undefined
  const after = at >= 0 ? paths[at + 1] : undefined
  const go = (to: string | undefined) => {
    if (!to) return
    setSheet('')
    onPath(to)
  }
  const seen = useQuery({
    queryKey: ['preview', session, path, sheet],
    staleTime: 0,
    gcTime: 0,
    refetchOnWindowFocus: false,
    retry: false,
    queryFn: ({ signal }) =>
      data(
        client.GET('/sessions/{session}/preview', {
          params: { path: { session }, query: { path, limit: 100, ...(sheet ? { sheet } : {}) } },
          signal,
        }),
      ),
  })
  useEffect(() => {
    const key = (e: KeyboardEvent) => {
      if (e.isComposing || e.ctrlKey || e.metaKey || e.altKey || e.shiftKey) return
      if ((e.target as HTMLElement).closest?.(still)) return
      if (e.key === 'ArrowLeft') go(before)
      if (e.key === 'ArrowRight') go(after)
    }
    document.addEventListener('keydown', key)
    return () => document.removeEventListener('keydown', key)
  })
  const name = plainName(path)
  const code = /\.(py|ipynb)$/i.test(path)
  return (
    <ModalOverlay className={css.overlay ?? ''} isOpen isDismissable onOpenChange={(open) => !open && onClose()}>
      <Modal className={css.wide ?? ''}>
        <Dialog className={css.inside ?? ''} aria-label={name}>
          <div className={css.title}>
            <h2>
              <bdi>{name}</bdi>
            </h2>
            <span className={css.tools}>
              {seen.data && <span className={css.quiet}>{bytes(seen.data.size)}</span>}
              {paths.length > 1 && (
                <>
                  <IconButton
                    label={w.preview.previous}
                    aria-keyshortcuts="ArrowLeft"
                    disabled={!before}
                    onClick={() => go(before)}
                  >
                    <ChevronLeft size={16} aria-hidden />
                  </IconButton>
                  <IconButton
                    label={w.preview.next}
                    aria-keyshortcuts="ArrowRight"
                    disabled={!after}
                    onClick={() => go(after)}
                  >
                    <ChevronRight size={16} aria-hidden />
                  </IconButton>
                </>
              )}
              {code && (
                <IconButton label={w.checks.check} onClick={() => setChecked(path)}>
                  <ListChecks size={16} aria-hidden />
                </IconButton>
              )}
              <IconButton
                label={w.preview.ask}
                onClick={() => {
                  onClose()
                  tellAbout(w.preview.question(name))
                }}
              >
                <MessageSquarePlus size={16} aria-hidden />
              </IconButton>
              <IconButton label={w.download} onClick={() => load(fileAddress(session, path))}>
                <Download size={16} aria-hidden />
              </IconButton>
              <IconButton label={w.close} onClick={onClose}>
                <X size={16} aria-hidden />
              </IconButton>
            </span>
          </div>
          {checked === path && (
            <Suspense fallback={null}>
              <CodeCheck
                id={`${session} ${path}`}
                what={() => ({ session, path })}
                runs
                onClose={() => setChecked('')}
              />
            </Suspense>
          )}
          {seen.error ? (
            <ProblemBox error={seen.error} onRetry={() => void seen.refetch()} />
          ) : seen.data ? (
            <PreviewBody
              key={`${path} ${sheet} ${seen.dataUpdatedAt}`}
              session={session}
              path={path}
              seen={seen.data}
              onSheet={setSheet}
              onAgain={() => void seen.refetch()}
              onClose={onClose}
            />
          ) : (
            <p className={css.quiet} role="status">
              {w.loading}
            </p>
          )}
        </Dialog>
      </Modal>
    </ModalOverlay>
  )
}
