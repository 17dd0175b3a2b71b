import { useQuery } from '@tanstack/react-query'
import {
  Archive,
  ChevronRight,
  Download,
  File as FileIcon,
  Folder,
  FolderPlus,
  Pencil,
  Trash2,
  Upload,
} from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { api, fileAddress, pathOf } from '../api/base'
import { client, data, type Entry, once, post } from '../api/client'
import { refresh } from '../api/queries'
import { putFile } from '../api/upload'
import { Actions, ask, complain, IconButton, ProblemBox } from '../parts'
import { bytes, plainName } from '../parts/format'
import { useWords } from '../words'
import { load, PreviewDialog } from './Preview'
import css from './panels.module.css'

const leaf = (path: string) => plainName(path.split('/').at(-1) ?? path)

/** What changed since the panel was opened. */
function useChanged(items: Entry[] | undefined) {
  const first = useRef<Map<string, string> | null>(null)
  useEffect(() => {
    if (items && !first.current) first.current = new Map(items.map((e) => [e.path, e.etag ?? '']))
  }, [items])
  return (e: Entry) => !e.folder && first.current !== null && first.current.get(e.path) !== (e.etag ?? '')
}

function List({ session, path }: { session: string; path: string }) {
  const w = useWords()
  const folder = useQuery({
    queryKey: ['files', session, path],
    queryFn: () =>
      data(client.GET('/sessions/{session}/files', { params: { path: { session }, query: path ? { path } : {} } })),
  })
  const changed = useChanged(folder.data?.items)
  const [shown, setShown] = useState('')
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set())
  const work = async (job: () => Promise<unknown>) => {
    try {
      await job()
      refresh({ session })
    } catch (error) {
      complain(error)
    }
  }
  const move = async (e: Entry) => {
    const to = await ask({ title: w.panels.move, label: w.panels.newPath, go: w.save, value: e.path })
    if (to && to !== e.path)
      await work(() =>
        data(
          client.POST('/sessions/{session}/move', {
            params: { path: { session } },
            body: { from: e.path, to: to.trim() },
          }),
        ),
      )
  }
  const remove = async (e: Entry) => {
    const yes = await ask({
      title: e.folder ? w.panels.deleteFolder : w.panels.deleteFile,
      text: w.panels.deleteText(e.path),
      go: w.remove,
      bad: true,
    })
    if (yes !== null)
      await work(() =>
        post(`sessions/${session}/files/${pathOf(e.path)}${e.folder ? '?all=true' : ''}`, undefined, 'DELETE'),
      )
  }
  if (folder.error) return <ProblemBox error={folder.error} onRetry={() => void folder.refetch()} />
  if (!folder.data) return <p className={css.quiet}>{w.loading}</p>
  if (!folder.data.items.length) return <p className={css.quiet}>{w.panels.empty}</p>
  return (
    <ul className={css.files}>
      {shown && (
        <PreviewDialog
          session={session}
          paths={folder.data.items.filter((e) => !e.folder).map((e) => e.path)}
          path={shown}
          onPath={setShown}
          onClose={() => setShown('')}
        />
      )}
      {folder.data.items.map((e) => {
        const name = leaf(e.path)
        return (
          <li key={e.path}>
            <div className={css.file}>
              {e.folder ? (
                <button
                  type="button"
                  aria-expanded={open.has(e.path)}
                  onClick={() => {
                    const next = new Set(open)
                    if (!next.delete(e.path)) next.add(e.path)
                    setOpen(next)
                  }}
                >
                  <ChevronRight size={14} aria-hidden className={open.has(e.path) ? css.turned : ''} />
                  <Folder size={15} aria-hidden />
                  <bdi>{name}</bdi>
                </button>
              ) : (
                <button type="button" title={plainName(e.path)} onClick={() => setShown(e.path)}>
                  <FileIcon size={15} aria-hidden />
                  <bdi>{name}</bdi>
                  {changed(e) && <em>{w.panels.changed}</em>}
                  <span>{bytes(e.size)}</span>
                </button>
              )}
              <Actions
                small
                label={w.panels.actions(name)}
                actions={[
                  {
                    id: 'load',
                    label: w.download,
                    icon: <Download size={15} aria-hidden />,
                    act: () =>
                      load(
                        e.folder
                          ? api(`sessions/${session}/archive?format=zip&path=${encodeURIComponent(e.path)}`)
                          : fileAddress(session, e.path),
                      ),
                  },
                  { id: 'move', label: w.panels.move, icon: <Pencil size={15} aria-hidden />, act: () => void move(e) },
                  {
                    id: 'remove',
                    label: w.remove,
                    icon: <Trash2 size={15} aria-hidden />,
                    bad: true,
                    act: () => void remove(e),
                  },
                ]}
              />
            </div>
            {e.folder && open.has(e.path) && <List session={session} path={e.path} />}
          </li>
        )
      })}
      {folder.data.more && <li className={css.quiet}>{w.panels.more}</li>}
    </ul>
  )
}

export function Files({ session }: { session: string }) {
  const w = useWords()
  const picker = useRef<HTMLInputElement>(null)
  const [part, setPart] = useState<number | null>(null)
  const upload = async (files: File[]) => {
    try {
      for (const file of files) {
        setPart(0)
        await putFile(session, file.webkitRelativePath || file.name, file, setPart).done
      }
    } catch (error) {
      complain(error)
    }
    setPart(null)
    refresh({ session })
  }
  const folder = async () => {
    const path = await ask({ title: w.panels.folder, go: w.save, value: '' })
    if (!path) return
    try {
      await data(
        client.POST('/sessions/{session}/folders', {
          params: { path: { session }, header: once() },
          body: { path: path.trim() },
        }),
      )
      refresh({ session })
    } catch (error) {
      complain(error)
    }
  }
  return (
    <>
      <div className={css.bar}>
        <IconButton label={w.panels.upload} onClick={() => picker.current?.click()}>
          <Upload size={16} aria-hidden />
        </IconButton>
        <IconButton label={w.panels.folder} onClick={() => void folder()}>
          <FolderPlus size={16} aria-hidden />
        </IconButton>
        <IconButton label={w.panels.archive} onClick={() => load(api(`sessions/${session}/archive?format=zip`))}>
          <Archive size={16} aria-hidden />
        </IconButton>
        {part !== null && <progress value={part} aria-label={w.panels.upload} />}
        <input
          ref={picker}
          type="file"
          multiple
          hidden
          onChange={(e) => {
            void upload([...(e.currentTarget.files ?? [])])
            e.currentTarget.value = ''
          }}
        />
      </div>
      <List session={session} path="" />
    </>
  )
}
