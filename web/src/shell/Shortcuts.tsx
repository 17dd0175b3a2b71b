import { Button, Dialog, parts } from '../parts'
import { modName } from '../parts/keys'
import { useWords } from '../words'
import css from './palette.module.css'

export function Shortcuts({ onClose }: { onClose: () => void }) {
  const w = useWords()
  const s = w.shortcuts
  const rows: [string, string][] = [
    [`${modName} K`, s.palette],
    [`${modName} P`, s.print],
    [`${modName} Enter`, s.send],
    ['Shift Enter', s.newline],
    [`${modName} Shift O`, s.new],
    ['Esc Esc', s.stop],
    ['↑ ', s.last],
    ['Alt ↑ ↓', s.turns],
    ['[', w.shell.side],
    [']', w.shell.side2],
    ['/', w.find.label],
    ['← →', w.shell.wider],
    ['↑ ↓', w.shell.palette],
    ['Enter', w.shell.rowMenu],
    ['Esc', w.shell.leave],
    ['?', s.help],
    ['j k · o · e · r · .', s.steps],
    ['Tab', s.complete],
    ['Shift Tab', s.describe],
    ['a b · dd · z · m y', s.cells],
  ]
  return (
    <Dialog title={w.nav.shortcuts} onClose={onClose}>
      <dl className={css.shortcuts}>
        {rows.map(([keys, what]) => (
          <div key={keys}>
            <dt>{what}</dt>
            <dd>
              <kbd>{keys.trim()}</kbd>
            </dd>
          </div>
        ))}
      </dl>
      <div className={parts.row}>
        <Button onClick={onClose}>{w.close}</Button>
      </div>
    </Dialog>
  )
}
