import { useMemo, useState } from 'react'
import { Button } from 'react-aria-components'
import css from './chart.module.css'
import { FrameView } from './FrameView'
import type { Theme } from './types'
import { fill, plain, size, words } from './words'

const bound = 30_000_000

/** Whether HTML does something only with scripts. Where this is wrong the frame's policy decides, not this. */
export function wantsScript(html: string): boolean {
  return /<script[\s>/]|\son[a-z]{3,20}\s*=|javascript\s*:|<iframe[\s>]/i.test(html)
}

export function hosts(html: string): string[] {
  const found = new Set<string>()
  for (const [, host] of html
    .slice(0, 2_000_000)
    .matchAll(/(?:src|href)\s*=\s*["']?(?:https?:)?\/\/([\w.-]{3,100})/gi)) {
    if (host) found.add(host.toLowerCase())
    if (found.size >= 4) break
  }
  return [...found]
}

// What the person had run: the output of a step that folds is drawn anew, and goes on running. Sets keep the order in which things came.
const allowed = new Set<string>()
const mostAllowed = 50

function allow(html: string, may: boolean) {
  allowed.delete(html)
  if (may) allowed.add(html)
  for (const oldest of allowed) {
    if (allowed.size <= mostAllowed) break
    allowed.delete(oldest)
  }
}

export function Html({ html, theme }: { html: string; theme: Theme }) {
  const w = words()
  const scripts = useMemo(() => wantsScript(html), [html])
  const [running, setRunning] = useState(() => allowed.has(html))
  const run = (may: boolean) => {
    allow(html, may)
    setRunning(may)
  }
  const [height, setHeight] = useState(80)
  const [failed, setFailed] = useState<string | null>(null)
  if (html.length > bound) return <p className={css.note}>{fill(w.tooMuch, { size: size(html.length) })}</p>
  if (scripts && !running) {
    const from = hosts(html)
    return (
      <div className={css.ask}>
        <p>
          <b>{w.interactive}</b>
        </p>
        <p>{w.interactiveWhy}</p>
        {from.length > 0 && <p>{fill(w.wants, { hosts: from.map((h) => plain(h, 60)).join(', ') })}</p>}
        <Button className={css.button ?? ''} onPress={() => run(true)}>
          {w.run}
        </Button>
      </div>
    )
  }
  return (
    <div className={css.figure}>
      <div className={css.card}>
        <FrameView
          kind={scripts ? 'scripts' : 'html'}
          data={html}
          theme={theme}
          title={w.htmlOutput}
          height={height}
          onHeight={setHeight}
          onFailed={setFailed}
          onRefused={() => scripts && setFailed(w.scriptsRefused)}
        />
      </div>
      {failed !== null && <p className={css.note}>{plain(failed, 300)}</p>}
      {scripts && (
        <Button className={css.button ?? ''} onPress={() => run(false)}>
          {w.stop}
        </Button>
      )}
    </div>
  )
}
