// Markdown while it is written: split into blocks, so that only the last one is read again.

const fence = /^ {0,3}(`{3,}|~{3,})/
const display = /^\s*(\$\$|\\\[)/
const item = /^ {0,3}([-*+]|\d{1,9}[.)])\s/

/** Blocks at blank lines outside of fences; a list, and what is indented below it, stays together. */
export function split(text: string): string[] {
  const blocks: string[] = []
  let lines: string[] = []
  let open: string | null = null // the fence, or the sign that ends a formula
  let blank = false
  let list = false
  const flush = () => {
    if (lines.some((l) => l.trim())) blocks.push(lines.join('\n'))
    lines = []
  }
  for (const line of text.split('\n')) {
    if (open === null && blank && line.trim() && !/^\s/.test(line) && !(list && item.test(line))) {
      flush()
      list = false
    }
    if (lines.length === 0 || (open === null && item.test(line))) list = item.test(line)
    lines.push(line)
    blank = line.trim() === ''
    if (open === null) {
      const start = fence.exec(line)?.[1]
      const sign = display.exec(line)?.[1]
      if (start && !(start[0] === '`' && line.slice(line.indexOf(start) + start.length).includes('`'))) open = start
      else if (sign) {
        const end = sign === '$$' ? '$$' : '\\]'
        const rest = line.slice(line.indexOf(sign) + 2)
        if (!rest.includes(end)) open = end
      }
    } else if (open === '$$' || open === '\\]') {
      if (line.includes(open)) open = null
    } else if (new RegExp(`^ {0,3}\\${open[0]}{${open.length},}\\s*$`).test(line)) open = null
  }
  flush()
  return blocks
}

/** Closes what a half-written block leaves open, so that nothing flickers: fences, code, bold, formulas, links. */
export function complete(block: string): string {
  let open: string | null = null
  for (const line of block.split('\n')) {
    const start = fence.exec(line)?.[1]
    if (!start) continue
    if (open === null) open = start
    else if (start[0] === open[0] && start.length >= open.length && line.trim() === start) open = null
  }
  if (open !== null) return `${block}\n${open}`
  let text = block.replace(/!?\[[^\]\n]*\]\([^)\n]*$/, (m) => m.slice(m.startsWith('!') ? 2 : 1, m.indexOf(']')))
  const outside = text.replace(/`+[^`]*`+/g, '')
  if ((outside.match(/`+/g)?.length ?? 0) % 2 === 1) text += /`+/.exec(outside)?.[0] ?? '`'
  if ((outside.match(/\$\$/g)?.length ?? 0) % 2 === 1) return `${text}$$`
  text = text.replace(/[*_~]{1,2}$/, (m) => ((outside.split(m).length - 1) % 2 === 1 ? '' : m))
  const bare = text.replace(/`+[^`]*`+/g, '')
  const tail = bare.slice(bare.lastIndexOf('\n') + 1)
  if ((tail.match(/\*\*/g)?.length ?? 0) % 2 === 1) text = `${text.trimEnd()}**`
  if ((bare.match(/~~/g)?.length ?? 0) % 2 === 1) text = `${text.trimEnd()}~~`
  return text
}

export interface Formula {
  tex: string
  display: boolean
}

const mark = /\ue000(\d+)\ue001/

/**
 * Takes formulas out before Markdown reads the text, and leaves marks. A dollar sign is a price when a digit follows
 * it, or a space comes before the closing one. Code is left alone.
 */
export function takeFormulas(text: string): { text: string; formulas: Formula[] } {
  const formulas: Formula[] = []
  const clean = text.replace(/[\ue000\ue001]/g, '')
  if (!/\$|\\[([]/.test(clean)) return { text: clean, formulas }
  const parts =
    /(^ {0,3}(`{3,}|~{3,})[^\n]*\n[\s\S]*?(?:\n {0,3}\2[`~]*\s*$|$(?![\s\S])))|(`+)(?!`)[\s\S]*?[^`]\3(?!`)|\$\$([\s\S]+?)\$\$|\\\[([\s\S]+?)\\\]|\\\(([\s\S]+?)\\\)|\\\$|\$(?![\s$])((?:\\.|[^$\\\n])*?[^\s\\$])\$(?!\d)/gm
  const out = clean.replace(parts, (all, _f, _g, _c, d1, d2, i1, i2) => {
    const tex = d1 ?? d2 ?? i1 ?? i2
    if (tex === undefined || formulas.length >= 500 || tex.length > 5000) return all
    formulas.push({ tex, display: d1 !== undefined || d2 !== undefined })
    return `\ue000${formulas.length - 1}\ue001`
  })
  return { text: out, formulas }
}

interface Node {
  type: string
  value?: string
  tagName?: string
  properties?: Record<string, unknown>
  children?: Node[]
}

/** A rehype plugin that makes elements of the marks. */
export function formulaMarks() {
  return (tree: Node) => visit(tree, 0)
}

function visit(node: Node, depth: number) {
  if (!node.children || depth > 200) return
  node.children = node.children.flatMap((child) => {
    if (child.type !== 'text' || !child.value || !mark.test(child.value)) {
      visit(child, depth + 1)
      return [child]
    }
    return child.value.split(/(\ue000\d+\ue001)/).map((value): Node => {
      const n = mark.exec(value)?.[1]
      if (n === undefined) return { type: 'text', value }
      return { type: 'element', tagName: 'data', properties: { value: `formula:${n}` }, children: [] }
    })
  })
}
