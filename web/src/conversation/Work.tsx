import type { Block } from '../events/group'
import { Said } from './Said'
import { Step } from './Step'

interface Props {
  blocks: Block[]
  turn: string
  live: boolean
  /** The last step, too, is a line that unfolds. */
  folded?: boolean
}

/** What a model did before its answer: steps, and what it said and thought between them. */
export function Work({ blocks, turn, live, folded = false }: Props) {
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
    // biome-ignore lint/suspicious/noArrayIndexKey: blocks are only added at the end
    return <Said key={`${b.kind}${i}`} part={b} live={live && i === blocks.length - 1} />
  })
}
