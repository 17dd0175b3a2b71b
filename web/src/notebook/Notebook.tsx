import { ListRestart, Play, Plus, RotateCcw, Square, Type, Undo2 } from 'lucide-react'
import type { Turn } from '../api/client'
import { Figures } from '../output'
import { Button, ProblemBox } from '../parts'
import { useWords } from '../words'
import { CellView } from './CellView'
import css from './notebook.module.css'
import { useCells } from './useCells'

/** The cells of a session: what ran in it, editable, and more below. */
export default function Notebook({ session, turns }: { session: string; turns?: readonly Turn[] }) {
  const w = useWords()
  const n = w.notebook
  const book = useCells(session, turns)
  const { cells, busy, waiting, focus } = book
  const alone = cells.length === 1 && !cells[0]?.execution && !focus.key
  const going = busy.size > 0 || waiting.length > 0
  return (
    <div className={css.scroll}>
      <div className={css.column}>
        {turns && <p className={css.from}>{n.fromSteps}</p>}
        <div className={css.head} role="toolbar" aria-label={n.title}>
          {book.removed > 0 && (
            <Button look="plain" onClick={book.undo}>
              <Undo2 size={14} aria-hidden />
              {n.undoRemove}
            </Button>
          )}
          {going ? (
            <Button look="plain" onClick={book.interrupt}>
              <Square size={12} fill="currentColor" aria-hidden />
              {n.interrupt}
            </Button>
          ) : (
            <Button look="plain" onClick={book.runAll}>
              <Play size={14} aria-hidden />
              {n.runAll}
            </Button>
          )}
          <Button look="plain" onClick={() => void book.anew(true)}>
            <ListRestart size={15} aria-hidden />
            {n.restartAll}
          </Button>
          <Button look="plain" onClick={() => void book.anew(false)}>
            <RotateCcw size={14} aria-hidden />
            {n.restart}
          </Button>
        </div>
        {book.error && <ProblemBox error={book.error} onRetry={book.reload} />}
        <Figures>
          {cells.map((c, i) => (
            <CellView
              key={c.key}
              cell={c}
              session={session}
              number={i + 1}
              old={book.old.has(c.key)}
              busy={busy.has(c.key)}
              waiting={waiting.includes(c.key)}
              chosen={focus.key === c.key}
              editing={(focus.key === c.key && focus.edit) || alone}
              act={book.act}
            />
          ))}
        </Figures>
        <div className={css.add}>
          <Button look="plain" onClick={() => book.append()}>
            <Plus size={15} aria-hidden />
            {n.add}
          </Button>
          <Button look="plain" onClick={() => book.append('markdown')}>
            <Type size={14} aria-hidden />
            {n.addText}
          </Button>
        </div>
      </div>
    </div>
  )
}
