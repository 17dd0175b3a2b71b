import { createContext, memo, type ReactNode, useContext, useMemo, useState } from 'react'
import { Button, Dialog, Modal, ModalOverlay } from 'react-aria-components'
import { explain } from '../words/problems'
import { StepContext } from './Album'
import { OnChart } from './GridTools'
import { GridView } from './GridView'
import css from './grid.module.css'
import type { Reader, Trouble } from './pages'
import { kindsOf, type Sheet, tableOf, whole } from './sheet'
import type { Kind, Table } from './table'
import { ChartOfContext, TablesContext } from './tables'
import { useLocal, useRemote, type View } from './view'
import { fill, number, plain, words } from './words'

/** A table of which all that there is came with the output. */
export default memo(function Grid({ table, number }: { table: Table; number?: number }) {
  return (
    <NumberContext value={number ?? 0}>
      <Local table={table} />
    </NumberContext>
  )
})

/** A table of a kernel: its first rows are here, the others are asked for as long as they can be. A variable's can be shown anew when it is another. */
export const SheetGrid = memo(function SheetGrid({ number, ...props }: SheetProps & { number?: number }) {
  const make = useContext(ChartOfContext)
  const { sheet, count = 0 } = props
  const chart = useMemo(() => (make && sheet.name ? () => make(sheet, count) : null), [make, sheet, count])
  return (
    <NumberContext value={number ?? 0}>
      <OnChart value={chart}>
        <SheetOf {...props} />
      </OnChart>
    </NumberContext>
  )
})

interface SheetProps {
  sheet: Sheet
  count?: number
  onAgain?: () => void
}

/** The how manieth output of its step a table is. */
const NumberContext = createContext(0)

/** What a table is called: by its variable, or by its step. */
function useLabel(name: string): string {
  const w = words()
  const step = useContext(StepContext)
  const n = useContext(NumberContext)
  if (name) return fill(w.tableNamed, { name })
  return step > 0 ? fill(w.tableOfStep, { n, step }) : n > 0 ? fill(w.tableNamed, { name: number(n) }) : w.table
}

function SheetOf({ sheet, onAgain }: SheetProps) {
  const w = words()
  const tables = useContext(TablesContext)
  const [agreed, setAgreed] = useState(false)
  const table = useMemo(() => tableOf(sheet), [sheet])
  const kinds = useMemo(() => kindsOf(sheet), [sheet])
  if (whole(sheet) || !tables || !sheet.name) return <Local table={table} kinds={kinds} name={sheet.name} />
  if (tables.state === 'gone')
    return <Local table={table} kinds={kinds} name={sheet.name} note={<Note>{w.tableGone}</Note>} />
  if (tables.state === 'paused' && !agreed)
    return (
      <Local
        table={table}
        kinds={kinds}
        name={sheet.name}
        note={
          <Note act={w.wake} onAct={() => setAgreed(true)}>
            {w.tablePaused}
          </Note>
        }
      />
    )
  return <Remote sheet={sheet} reader={tables.reader} table={table} kinds={kinds} onAgain={onAgain} />
}

interface LocalProps {
  table: Table
  kinds?: readonly Kind[]
  note?: ReactNode
  name?: string
}

function Local({ table, kinds, note, name }: LocalProps) {
  return <Both view={useLocal(table, kinds)} note={note} name={name} />
}

interface RemoteProps {
  sheet: Sheet
  reader: Reader
  table: Table
  kinds: readonly Kind[]
  onAgain?: (() => void) | undefined
}

function Remote({ sheet, reader, table, kinds, onAgain }: RemoteProps) {
  const w = words()
  const view = useRemote(sheet, reader)
  const kind = view.trouble?.kind
  if (kind === 'gone' || kind === 'changed')
    return (
      <Local
        table={table}
        kinds={kinds}
        name={sheet.name}
        note={
          <Note act={onAgain && w.showNow} onAct={onAgain}>
            {kind === 'gone' ? w.tableGone : w.tableChanged}
          </Note>
        }
      />
    )
  return <Both view={view} name={sheet.name} note={view.trouble && <Waiting trouble={view.trouble} view={view} />} />
}

function Waiting({ trouble, view }: { trouble: Trouble; view: View }) {
  const w = words()
  const said = explain({ code: trouble.code, message: trouble.text, hint: trouble.hint })
  if (trouble.kind === 'busy') return <Note>{w.tableBusy}</Note>
  return (
    <Note
      act={trouble.kind === 'refused' ? w.understood : w.again}
      onAct={() => {
        if (trouble.kind === 'refused') {
          view.setSort(null)
          view.setFilter('')
        }
        view.retry()
      }}
    >
      {trouble.kind === 'refused'
        ? fill(w.tableRefused, { why: trouble.text })
        : [said.what || w.tableFailed, said.todo].filter(Boolean).join(' ')}
    </Note>
  )
}

interface NoteProps {
  children: ReactNode
  act?: string | undefined
  onAct?: (() => void) | undefined
}

function Note({ children, act, onAct }: NoteProps) {
  return (
    <p className={css.note} role="status">
      {children}
      {act && onAct && (
        <Button className={css.act ?? ''} onPress={onAct}>
          {act}
        </Button>
      )}
    </p>
  )
}

/** In its place, and over the whole page when it is wanted so. */
function Both({ view, note, name = '' }: { view: View; note?: ReactNode; name?: string | undefined }) {
  const [full, setFull] = useState(false)
  const label = useLabel(plain(name.replace(/^~\d+$/, ''), 100))
  const file = name.replace(/^~\d+$/, '').replace(/[^\p{L}\p{N}_-]/gu, '')
  if (!full) return <GridView view={view} note={note} name={file} label={label} onFull={() => setFull(true)} />
  return (
    <>
      <div className={css.away} />
      <ModalOverlay className={css.overlay ?? ''} isOpen isDismissable onOpenChange={setFull}>
        <Modal className={css.modal ?? ''}>
          <Dialog className={css.dialog ?? ''} aria-label={label}>
            <GridView view={view} note={note} name={file} label={label} full onClose={() => setFull(false)} />
          </Dialog>
        </Modal>
      </ModalOverlay>
    </>
  )
}
