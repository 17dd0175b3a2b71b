import { FileText, RotateCw, X } from 'lucide-react'
import { IconButton } from '../parts'
import { bytes, plainName } from '../parts/format'
import { useWords } from '../words'
import { type Attachment, canResend, detach, resend } from './attachments'
import css from './composer.module.css'

function Head({ rows }: { rows: string[][] }) {
  const [first, ...rest] = rows
  if (!first) return null
  return (
    <table className={css.head}>
      <thead>
        <tr>
          {first.map((cell, i) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: cells have no other name
            <th key={i} scope="col">
              {cell}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rest.map((row, r) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: rows have no other name
          <tr key={r}>
            {row.map((cell, i) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: cells have no other name
              <td key={i}>{cell}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** The files of the question that is being written. A table alone shows its first rows, too. */
export function Chips({ scope, files }: { scope: string; files: Attachment[] }) {
  const w = useWords()
  if (!files.length) return null
  const only = files.length === 1 ? files[0] : undefined
  return (
    <div className={css.attached}>
      <ul className={css.chips}>
        {files.map((f) => (
          <li key={f.key} className={css.chip} title={f.error || undefined} data-bad={f.error ? true : undefined}>
            {f.picture ? <img className={css.thumb} src={f.picture} alt="" /> : <FileText size={15} aria-hidden />}
            <bdi className={css.name}>{plainName(f.name)}</bdi>
            <span className={css.size}>{f.error || (f.id ? bytes(f.size) : `${Math.round(f.part * 100)} %`)}</span>
            {!f.id && !f.error && (
              <progress
                className={css.progress}
                value={f.part}
                aria-label={w.composer.uploading(f.name, `${Math.round(f.part * 100)} %`)}
              />
            )}
            {f.error && canResend(f.key) && (
              <IconButton
                small
                label={w.shell.resend(plainName(f.name))}
                onClick={() => resend(scope, f.key, (most) => w.shell.tooLarge(bytes(most)))}
              >
                <RotateCw size={14} aria-hidden />
              </IconButton>
            )}
            <IconButton small label={w.composer.removeFile(plainName(f.name))} onClick={() => detach(scope, f.key)}>
              <X size={14} aria-hidden />
            </IconButton>
          </li>
        ))}
      </ul>
      {only && only.head.length > 1 && <Head rows={only.head} />}
      {only?.table && (only.table.moreColumns > 0 || only.table.rows > only.head.length - 1) && (
        <p className={css.moreOf}>{w.composer.moreOf(only.table.moreColumns, only.table.rows)}</p>
      )}
    </div>
  )
}
