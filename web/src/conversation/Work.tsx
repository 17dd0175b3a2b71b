import type { Block } from '../events/group'
import { Markdown } from '../output'
import { useWords } from '../words'
import { Step } from './Step'
import css from './turn.module.css'

interface Props {
  blocks: Block[]
  turn: string
  live: boolean
  /** The last step, too, is a line that unfolds. */
  folded?: boolean
}

/** What a model did before its answer: steps, and what it said and thought between them. */
export function Work({ blocks, turn, live, folded = false }: Props) {
  const w = useWords()
  const last = blocks.findLastIndex((b) => b.kind === 'group')
  return blocks.map((b, i) => {
    if (b.kind === 'group') {
      const { step } = b
      return (
        <Step
          key={`s${step.number}`}
          group={b}
          version={step.version}
          id={`${turn}/${step.number}`}
          live={live}
          last={!folded && i === last}
        />
      )
    }
    const key = `${b.kind}${i}`
    if (b.kind === 'reasoning')
      return (
        <details key={key} className={css.reasoning}>
          <summary>{w.turn.reasoning}</summary>
          <p dir="auto">{b.text}</p>
        </details>
      )
    if (b.kind === 'notice')
      return (
        <p key={key} className={css.notice}>
          {b.text}
        </p>
      )
    return (
      <div key={key} className={css.said} dir="auto">
        <Markdown text={b.text} live={live && i === blocks.length - 1} />
      </div>
    )
  })
}
