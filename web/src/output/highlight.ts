import { type Tree, TreeFragment } from '@lezer/common'
import { highlightCode, tags as t, tagHighlighter } from '@lezer/highlight'
import { parser } from '@lezer/python'

export type Piece = [text: string, name: string]

const names = tagHighlighter([
  { tag: [t.keyword, t.operatorKeyword, t.controlKeyword, t.definitionKeyword, t.moduleKeyword], class: 'keyword' },
  { tag: [t.string, t.special(t.string)], class: 'string' },
  { tag: [t.number, t.bool, t.null], class: 'number' },
  { tag: t.comment, class: 'comment' },
  {
    tag: [t.function(t.variableName), t.function(t.definition(t.variableName)), t.definition(t.className)],
    class: 'name',
  },
  { tag: [t.className, t.function(t.propertyName), t.meta], class: 'name' },
])

/** Python as lines of pieces. Text that grows at its end is parsed again only near its end. */
export class Highlighter {
  private text = ''
  private tree: Tree | null = null
  private done: Piece[][] = [[]]

  lines(text: string): Piece[][] {
    if (text === this.text && this.tree) return this.done
    const grown = this.tree && text.startsWith(this.text)
    let fragments: readonly TreeFragment[] = []
    if (grown && this.tree) {
      const at = this.text.length
      fragments = TreeFragment.applyChanges(TreeFragment.addTree(this.tree), [
        { fromA: at, toA: at, fromB: at, toB: text.length },
      ])
    }
    this.tree = parser.parse(text, fragments)
    this.text = text
    const lines: Piece[][] = [[]]
    highlightCode(
      text,
      this.tree,
      names,
      (piece, name) => lines.at(-1)?.push([piece, name.split(' ')[0] ?? '']),
      () => lines.push([]),
    )
    this.done = lines
    return lines
  }
}
