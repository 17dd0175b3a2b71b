import { Component, createContext, lazy, memo, type ReactNode, Suspense, useContext, useMemo } from 'react'
import ReactMarkdown, { type Components } from 'react-markdown'
import cjk from 'remark-cjk-friendly'
import gfm from 'remark-gfm'
import { complete, type Formula, formulaMarks, split, takeFormulas } from './blocks'
import { Code } from './Code'
import { Link } from './Link'
import css from './markdown.module.css'
import type { Files } from './types'
import { fill, plain, words } from './words'

const Maths = lazy(() => import('./maths'))

interface Props {
  text: string
  live?: boolean
  files?: Files
}

interface Around {
  files?: Files
  formulas: readonly Formula[]
  live: boolean
}
const AroundContext = createContext<Around>({ formulas: [], live: false })

const bound = 1_000_000
const definition = /^ {0,3}\[[^\]\n]{1,200}\]:[ \t]*\S[^\n]*$/gm

export const Markdown = memo(function Markdown({ text, live = false, files }: Props) {
  const bounded = text.length > bound ? text.slice(0, bound) : text
  const blocks = split(bounded)
  const definitions = bounded.includes(']:') ? (bounded.match(definition) ?? []).slice(0, 200).join('\n') : ''
  return (
    <div className={css.markdown}>
      {blocks.map((block, i) => {
        const last = live && i === blocks.length - 1
        const whole = definitions && /\]\[|\[[^\]]+\]/.test(block) ? `${block}\n\n${definitions}` : block
        return (
          <BlockOf
            // biome-ignore lint/suspicious/noArrayIndexKey: blocks are only added at the end
            key={i}
            text={last ? complete(whole) : whole}
            live={last}
            files={files}
          />
        )
      })}
    </div>
  )
})

const BlockOf = memo(function BlockOf({ text, live, files }: { text: string; live: boolean; files?: Files }) {
  const taken = useMemo(() => takeFormulas(text), [text])
  const around = useMemo(() => ({ files, formulas: taken.formulas, live }), [files, taken, live])
  return (
    <Guard text={text}>
      <AroundContext.Provider value={around}>
        <ReactMarkdown
          remarkPlugins={plugins}
          rehypePlugins={rehype}
          components={components}
          skipHtml={false}
          urlTransform={address}
        >
          {taken.text}
        </ReactMarkdown>
      </AroundContext.Provider>
    </Guard>
  )
})

const plugins = [gfm, cjk]
const rehype = [formulaMarks]

/** Text that cannot be read as Markdown is shown as it is. */
class Guard extends Component<{ text: string; children: ReactNode }, { failed: string | null }> {
  override state = { failed: null }
  static getDerivedStateFromError() {
    return { failed: true }
  }
  override componentDidUpdate(before: { text: string }) {
    if (this.state.failed && before.text !== this.props.text) this.setState({ failed: null })
  }
  override render() {
    return this.state.failed ? <p className={css.verbatim}>{this.props.text}</p> : this.props.children
  }
}

/** Addresses stay as they are here; what may be done with them is decided where they are used. */
const address = (url: string) => url

function Picture({ src, alt }: { src?: string; alt?: string }) {
  const { files } = useContext(AroundContext)
  const w = words()
  const from = pictureAddress(src, files)
  if (from) return <img src={from} alt={alt ?? ''} loading="lazy" decoding="async" className={css.picture} />
  return (
    <span className={css.blocked}>
      {alt ? `${plain(alt)} · ` : ''}
      {fromHost(src) ? fill(w.imageNotLoaded, { host: plain(fromHost(src), 80) }) : w.imageUnknown}
    </span>
  )
}

export function pictureAddress(src: unknown, files?: Files): string | null {
  if (typeof src !== 'string') return null
  if (/^data:image\/(png|jpeg|gif|webp);base64,[\w+/=]+$/.test(src)) return src.length < 30_000_000 ? src : null
  if (/^blob:/.test(src)) return src
  // A path in the workspace: no scheme, no host.
  if (/^[a-z][a-z0-9+.-]*:/i.test(src) || /^[\\/]{2}/.test(src) || /[\p{Cc}\\]/u.test(src)) return null
  let path = src
  try {
    path = decodeURIComponent(src)
  } catch {}
  return files?.(path.replace(/^\.\//, '')) ?? null
}

function fromHost(src: unknown): string {
  try {
    return new URL(String(src), 'http://-').host.replace(/^-$/, '')
  } catch {
    return ''
  }
}

const components: Components = {
  a: ({ href, children }) => <Link href={href}>{children}</Link>,
  img: ({ src, alt }) => <Picture src={typeof src === 'string' ? src : undefined} alt={alt} />,
  pre: ({ children }) => children,
  code: Fence,
  data: MathsOf,
  table: ({ children }) => (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a wide table has to be scrolled with the keyboard
    <section className={css.table} tabIndex={0} aria-label={words().table}>
      <table>{children}</table>
    </section>
  ),
  // Headings of an answer are below those of the page.
  h1: ({ children }) => <h3>{children}</h3>,
  h2: ({ children }) => <h4>{children}</h4>,
  h3: ({ children }) => <h5>{children}</h5>,
  h4: ({ children }) => <h6>{children}</h6>,
  h5: ({ children }) => <h6>{children}</h6>,
  input: ({ checked }) => <input type="checkbox" checked={checked ?? false} readOnly disabled />,
}

function Fence({ className, children, node }: { className?: string; children?: ReactNode; node?: unknown }) {
  const { live } = useContext(AroundContext)
  const text = typeof children === 'string' ? children : Array.isArray(children) ? children.join('') : ''
  const position = (node as { position?: { start: { line: number }; end: { line: number } } })?.position
  const fenced =
    className !== undefined || text.endsWith('\n') || (position && position.start.line !== position.end.line)
  if (!fenced) return <code className={css.code}>{children}</code>
  return (
    <div className={css.fence}>
      <Code text={text} language={/language-(\S+)/.exec(className ?? '')?.[1] ?? 'text'} live={live} />
    </div>
  )
}

function MathsOf({ value }: { value?: unknown }) {
  const { formulas } = useContext(AroundContext)
  const formula = formulas[Number(String(value).replace('formula:', ''))]
  if (!formula) return null
  return (
    <Suspense fallback={<code>{formula.tex}</code>}>
      <Maths tex={formula.tex} display={formula.display} />
    </Suspense>
  )
}

/** `text/latex`: one formula, with or without its dollar signs. */
export function Latex({ text }: { text: string }) {
  const all = /^\s*(?:\$\$([\s\S]+)\$\$|\\\[([\s\S]+)\\\]|\\\(([\s\S]+)\\\)|\$([\s\S]+)\$)\s*$/.exec(text)
  const tex = all?.[1] ?? all?.[2] ?? all?.[3] ?? all?.[4] ?? text
  return (
    <Suspense fallback={<code>{text}</code>}>
      <Maths tex={tex.replace(/^\\displaystyle\s*/, '').slice(0, 20_000)} display />
    </Suspense>
  )
}
