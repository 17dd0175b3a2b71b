import katex from 'katex'
import { createElement, type ReactNode, useMemo } from 'react'
import { parseInert } from '../api/trusted'
import css from './markdown.module.css'

// KaTeX writes MathML; of that only these elements and attributes become elements of the page.

const elements = new Set(
  'math mrow mi mo mn mtext mspace ms mfrac msqrt mroot mstyle mpadded mphantom menclose msub msup msubsup munder mover munderover mmultiscripts mprescripts none mtable mtr mtd mlabeledtr semantics'.split(
    ' ',
  ),
)
const attributes = new Map(
  Object.entries({
    display: 'display',
    mathvariant: 'mathvariant',
    stretchy: 'stretchy',
    fence: 'fence',
    separator: 'separator',
    lspace: 'lspace',
    rspace: 'rspace',
    minsize: 'minsize',
    maxsize: 'maxsize',
    accent: 'accent',
    accentunder: 'accentunder',
    linethickness: 'linethickness',
    displaystyle: 'displaystyle',
    scriptlevel: 'scriptlevel',
    columnalign: 'columnalign',
    columnspacing: 'columnspacing',
    rowspacing: 'rowspacing',
    movablelimits: 'movablelimits',
    notation: 'notation',
    width: 'width',
    height: 'height',
    depth: 'depth',
    voffset: 'voffset',
  }),
)

function convert(node: Node, key: number, budget: { left: number }): ReactNode {
  if (node.nodeType === 3) return node.nodeValue
  if (node.nodeType !== 1 || budget.left-- <= 0) return null
  const element = node as Element
  const tag = element.localName
  if (!elements.has(tag)) return null
  const props: Record<string, string | number> = { key }
  for (const a of element.attributes) {
    const name = attributes.get(a.name)
    if (name && /^[\w.+\-% ]{1,60}$/.test(a.value)) props[name] = a.value
  }
  const colour = element.getAttribute('mathcolor')
  if (colour && /^#?\w{1,20}$/.test(colour)) props.mathcolor = colour
  return createElement(tag, props, ...[...element.childNodes].map((c, i) => convert(c, i, budget)))
}

export function toMath(tex: string, display: boolean): ReactNode {
  const html = katex.renderToString(tex, {
    displayMode: display,
    output: 'mathml',
    trust: false,
    strict: 'ignore',
    throwOnError: true,
    maxExpand: 1000,
    maxSize: 50,
  })
  const math = parseInert(html).querySelector('math')
  return math ? convert(math, 0, { left: 20_000 }) : null
}

export default function Maths({ tex, display }: { tex: string; display: boolean }) {
  const math = useMemo(() => {
    try {
      return toMath(tex, display)
    } catch {
      return <code>{tex}</code>
    }
  }, [tex, display])
  return <span className={display ? css.display : css.inline}>{math}</span>
}
