import { Component, memo, type ReactNode, useCallback, useContext, useEffect, useRef, useState } from 'react'
import { Figures } from './Album'
import { Bundle } from './Bundle'
import { ErrorView } from './ErrorView'
import { type Block, Following, fold } from './fold'
import { InputLine } from './InputLine'
import { Done, Files, Install, Rollback } from './Notes'
import css from './outputs.module.css'
import { TerminalView } from './TerminalView'
import { whole } from './terminal'
import type { OutputEvent, Theme } from './types'
import { type News, ToldContext, ToldStates, WidgetContext } from './widgets'
import { fill, words } from './words'

export interface OutputsProps {
  items: readonly OutputEvent[]
  /** Another one whenever `items` has grown, which stays the same list. */
  version?: number
  live?: boolean
  theme?: Theme
  onOpenFile?: (path: string) => void
}

const newest = 100

/** What an execution gave, in order. `items` only grow at their end while `live`. */
export const Outputs = memo(function Outputs({ items, live = false, theme = 'light', onOpenFile }: OutputsProps) {
  const following = useRef<Following>(undefined)
  following.current ??= new Following()
  const blocks = following.current.read(items)
  const told = useRef<ToldStates>(undefined)
  told.current ??= new ToldStates()
  const news = useRef<News[]>([])
  news.current.push(...told.current.read(items))
  const place = useContext(WidgetContext)
  useEffect(() => {
    const heard = news.current.splice(0)
    if (live && place) for (const one of heard) place.hear(one)
  })
  const [all, setAll] = useState(false)
  const current = useRef(items)
  current.current = items
  const again = useCallback((key: number) => {
    const found = fold(current.current, whole).find((b) => b.key === key)
    return found?.kind === 'terminal' ? found.terminal : null
  }, [])
  if (blocks.length === 0) return null
  const hidden = all ? 0 : Math.max(0, blocks.length - newest)
  const failed = blocks.some((b) => b.kind === 'error')
  let bundles = 0
  return (
    <ToldContext value={told.current}>
      <Figures>
        <div className={css.outputs}>
          {hidden > 0 && (
            <button type="button" className={css.more} onClick={() => setAll(true)}>
              {fill(words().outputsNotShown, { n: hidden })} · {words().showAll}
            </button>
          )}
          {blocks.map((block, i) => {
            if (block.kind === 'bundle') bundles++
            if (i < hidden) return null
            return (
              <Guard key={block.key} block={block}>
                <One
                  block={block}
                  n={bundles}
                  live={live}
                  theme={theme}
                  failed={failed}
                  again={again}
                  onOpenFile={onOpenFile}
                />
              </Guard>
            )
          })}
        </div>
      </Figures>
    </ToldContext>
  )
})

interface OneProps {
  block: Block
  n: number
  live: boolean
  theme: Theme
  failed: boolean
  again: (key: number) => ReturnType<NonNullable<Parameters<typeof TerminalView>[0]['whole']>>
  onOpenFile?: (path: string) => void
}

const One = memo(function One({ block, n, live, theme, failed, again, onOpenFile }: OneProps) {
  switch (block.kind) {
    case 'terminal':
      return (
        <TerminalView
          terminal={block.terminal}
          version={block.version}
          name={block.name}
          whole={() => again(block.key)}
        />
      )
    case 'bundle':
      return <Bundle n={n} data={block.data} metadata={block.metadata} theme={theme} />
    case 'error':
      return <ErrorView event={block.event} />
    case 'install':
      return <Install progress={block.progress} event={block.event} live={live} />
    case 'files':
      return <Files files={block.files} onOpen={onOpenFile} />
    case 'rollback':
      return <Rollback event={block.event} />
    case 'input':
      return <InputLine event={block.event} reply={block.reply} live={live} />
    case 'done':
      return <Done event={block.event} error={failed} />
  }
})

/** One output that cannot be shown does not take the others with it. */
class Guard extends Component<{ block: Block; children: ReactNode }, { failed: boolean; block: Block }> {
  override state = { failed: false, block: this.props.block }
  static getDerivedStateFromError() {
    return { failed: true }
  }
  static getDerivedStateFromProps(props: { block: Block }, state: { block: Block }) {
    return props.block === state.block ? null : { failed: false, block: props.block }
  }
  override render() {
    if (!this.state.failed) return this.props.children
    return <p className={css.note}>{fill(words().unknownOutput, { kinds: this.props.block.kind })}</p>
  }
}
