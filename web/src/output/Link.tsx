import { type MouseEvent, type ReactNode, useState } from 'react'
import { Button, Dialog, Heading, Modal, ModalOverlay } from 'react-aria-components'
import css from './markdown.module.css'
import { words } from './words'

/** The whole address of a link that may be opened, or null. */
export function linkAddress(href: unknown): URL | null {
  if (typeof href !== 'string' || href.length > 8000) return null
  try {
    const url = new URL(href)
    return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url : null
  } catch {
    return null
  }
}

/** A query, a name or a fragment can carry away what the model has read: the person sees all of it first. */
export const asksFirst = (url: URL) => url.href.length > 80 || url.search !== '' || url.username !== ''

export function go(url: URL) {
  window.open(url.href, '_blank', 'noopener,noreferrer')
}

export function Link({ href, children }: { href?: string; children?: ReactNode }) {
  const url = linkAddress(href)
  const [asking, setAsking] = useState(false)
  if (!url) return <span>{children}</span>
  const click = (e: MouseEvent) => {
    if (!asksFirst(url)) return
    e.preventDefault()
    setAsking(true)
  }
  return (
    <>
      <a
        href={url.href}
        title={url.href}
        target="_blank"
        rel="noopener noreferrer"
        className={css.link}
        onClick={click}
        onAuxClick={click}
      >
        {children}
      </a>
      {asking && <Ask url={url} onClose={() => setAsking(false)} />}
    </>
  )
}

export function Ask({ url, onClose }: { url: URL; onClose: () => void }) {
  const w = words()
  return (
    <ModalOverlay className={css.overlay ?? ''} isOpen isDismissable onOpenChange={(open) => !open && onClose()}>
      <Modal className={css.modal ?? ''}>
        <Dialog className={css.dialog ?? ''} role="alertdialog">
          <Heading slot="title" className={css.title ?? ''}>
            {w.openLink}
          </Heading>
          <p className={css.why}>{w.openLinkWhy}</p>
          <p className={css.address}>
            {url.host ? `${url.protocol}//` : ''}
            <b>{url.host}</b>
            {url.host ? url.href.slice(url.href.indexOf(url.host) + url.host.length) : url.href}
          </p>
          <div className={css.buttons}>
            <Button className={css.button ?? ''} onPress={onClose} autoFocus>
              {w.cancel}
            </Button>
            <Button
              className={`${css.button} ${css.main}`}
              onPress={() => {
                go(url)
                onClose()
              }}
            >
              {w.open}
            </Button>
          </div>
        </Dialog>
      </Modal>
    </ModalOverlay>
  )
}
