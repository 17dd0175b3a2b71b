import { FileDown, GitFork, Printer, Share2 } from 'lucide-react'
import { lazy, Suspense, useState } from 'react'
import type { Turn } from '../api/client'
import { asProblem } from '../api/problem'
import { useMe } from '../api/queries'
import { Actions, complain, toast } from '../parts'
import { useWords } from '../words'
import { exportBranch, type Format, formats } from './export'
import { mayShare, useSharing } from './links'

const ShareDialog = lazy(() => import('./ShareDialog').then((m) => ({ default: m.ShareDialog })))

interface Props {
  conversation: string
  title: string
  branch: Turn[]
  onFork: (last: Turn) => void
  onPrint: () => void
}

/** What is done with the branch of a conversation that is shown: a link for others, a conversation of its own, and files. */
export function ShareMenu({ conversation, title, branch, onFork, onPrint }: Props) {
  const w = useWords()
  const sharing = useSharing()
  const may = mayShare(useMe().data)
  const [open, setOpen] = useState(false)
  const last = branch.at(-1)
  if (!last) return null
  // Whether the last question is answered is the server's to say: what is known here may be a moment old.
  const save = async (format: Format) => {
    try {
      await exportBranch(conversation, last.id, format)
    } catch (error) {
      if (asProblem(error).code === 'turn_running') toast(w.share.running)
      else complain(error)
    }
  }
  return (
    <>
      <Actions
        label={w.share.actions}
        actions={[
          ...(sharing && may
            ? [
                {
                  id: 'share',
                  label: w.share.open,
                  icon: <Share2 size={15} aria-hidden />,
                  act: () => setOpen(true),
                },
              ]
            : []),
          {
            id: 'fork',
            label: w.turn.forkAll,
            icon: <GitFork size={15} aria-hidden />,
            act: () => onFork(last),
          },
          {
            id: 'print',
            label: w.print.open,
            icon: <Printer size={15} aria-hidden />,
            act: onPrint,
          },
          ...formats.map((format) => ({
            id: format,
            label: w.exports[format],
            icon: <FileDown size={15} aria-hidden />,
            act: () => void save(format),
          })),
        ]}
      />
      {open && (
        <Suspense fallback={null}>
          <ShareDialog
            conversation={conversation}
            title={title}
            turn={last.id}
            count={branch.length}
            onClose={() => setOpen(false)}
          />
        </Suspense>
      )}
    </>
  )
}
