import { type FormEvent, useState } from 'react'
import { client, data } from '../api/client'
import { asProblem, type Problem } from '../api/problem'
import { Button, Dialog, ProblemBox, parts } from '../parts'
import { useWords } from '../words'
import { Address } from './Address'
import { Links } from './Links'
import { refreshShares, sharedAddress } from './links'
import css from './share.module.css'

const lives = ['86400', '604800', '2592000', '31536000', '0']
const usual = '2592000'

/** Makes links to the branch of a conversation that is shown, and lists those that there are. */
export function ShareDialog({
  conversation,
  title,
  turn,
  count,
  onClose,
}: {
  conversation: string
  title: string
  /** The last one to show. */
  turn: string
  /** How many turns the branch has. */
  count: number
  onClose: () => void
}) {
  const w = useWords()
  const s = w.share
  const [code, setCode] = useState(true)
  const [made, setMade] = useState('')
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<Problem | null>(null)
  const make = async (e: FormEvent<HTMLFormElement>) => {
    e.preventDefault()
    const seconds = Number(new FormData(e.currentTarget).get('seconds'))
    setBusy(true)
    setProblem(null)
    try {
      const said = await data(
        client.POST('/conversations/{conversation}/shares', {
          params: { path: { conversation } },
          body: { turn, code, seconds },
        }),
      )
      setMade(sharedAddress(said.code))
      await refreshShares()
    } catch (error) {
      setProblem(asProblem(error))
    } finally {
      setBusy(false)
    }
  }
  return (
    <Dialog title={s.title} onClose={onClose} className={css.dialog ?? ''}>
      <p>{s.text}</p>
      {made ? (
        <>
          <Address text={s.made} address={made} />
          <div className={parts.row}>
            <Button look="plain" onClick={() => setMade('')}>
              {s.again}
            </Button>
            <Button look="primary" onClick={onClose}>
              {w.close}
            </Button>
          </div>
        </>
      ) : (
        <form onSubmit={(e) => void make(e)}>
          <p className={css.what}>
            <bdi>{title}</bdi>
            <span>
              {s.what(count)}. {s.branch}
            </span>
          </p>
          <label className={css.choice}>
            <input type="checkbox" checked={code} onChange={(e) => setCode(e.target.checked)} />
            <span>
              {s.code}
              <small>{code ? s.codeNote : s.noCode}</small>
            </span>
          </label>
          <label className={css.life}>
            {s.life}
            <select className={css.select} name="seconds" defaultValue={usual}>
              {lives.map((l) => (
                <option key={l} value={l}>
                  {s.lives[l]}
                </option>
              ))}
            </select>
          </label>
          <p>{s.fixed}</p>
          {problem && <ProblemBox error={problem} />}
          <div className={parts.row}>
            <Button look="plain" onClick={onClose}>
              {w.cancel}
            </Button>
            <Button type="submit" look="primary" disabled={busy}>
              {s.make}
            </Button>
          </div>
        </form>
      )}
      <section className={css.list}>
        <h3>{s.links}</h3>
        <Links conversation={conversation} />
      </section>
    </Dialog>
  )
}
