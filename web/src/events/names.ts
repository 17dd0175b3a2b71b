// What a step is called, by its code alone.

/** What steps do, in words. */
export interface StepNames {
  reads: (what: string) => string
  writes: (what: string) => string
  draws: (what: string) => string
  draw: string
  defines: (what: string) => string
  imports: (what: string) => string
}

const longest = 90
const mostLines = 2000
const widest = 2000

const cut = (text: string) => (text.length > longest ? `${text.slice(0, longest - 1)}…` : text)

const text = String.raw`[rbfu]{0,2}(?<mark>['"])(?<text>[^'"\n\\{}]{1,200})\k<mark>`
const reading = new RegExp(
  String.raw`\b(?:read_\w{1,30}|open|loadtxt|genfromtxt|imread|load_workbook|ZipFile|ExcelFile|Path|connect)\(\s*(?:${text}|(?<name>[A-Za-z_]\w{0,60})\b)`,
)
const writing = new RegExp(
  String.raw`\.(?:to_(?:csv|excel|parquet|json|feather|html|markdown|pickle|latex)|savefig|write_(?:html|image|csv|parquet|json|excel)|save)\(\s*(?:${text}|(?<name>[A-Za-z_]\w{0,60})\b)`,
)
const openedToWrite = /\bopen\([^()\n]{1,200},\s*(?:mode\s*=\s*)?['"][wax]/
const given = new RegExp(String.raw`^(?<name>[A-Za-z_]\w{0,60})\s*=\s*${text}\s*(?:#.*)?$`)
const drawing = /\b(?:plt|sns|px|alt|go|ax\w{0,4}|pio)\.\w+\(|\.(?:plot|hist|boxplot)(?:\.\w+)?\(/
const titled = new RegExp(String.raw`\b(?:set_title|title|suptitle)\s*[(=]\s*${text}`)

/** Lines that prepare what a step is for, or are none of its statements. */
const aside =
  /^(?:import |from \S+ import|def |async def |class |@|%|!|[)\]}]|warnings\.|pd\.set_option|pd\.options|np\.random\.seed|plt\.rcParams|plt\.style|sns\.set|if TYPE_CHECKING)/

interface Parts {
  comment: string
  lines: string[]
  imports: string[]
  defines: string[]
}

/** What a name may come from: the statements outside of blocks, and the first comment before any of them. */
function partsOf(code: string): Parts {
  const parts: Parts = { comment: '', lines: [], imports: [], defines: [] }
  let quoted = '' // the marks of a text of several lines that has not ended
  let header = false // of a script: PEP 723
  let open = 0 // brackets
  for (const whole of code.split('\n', mostLines)) {
    const line = whole.slice(0, widest)
    const said = line.trim()
    if (quoted) {
      if (line.split(quoted).length % 2 === 0) quoted = ''
      continue
    }
    for (const mark of ['"""', "'''"]) if (line.split(mark).length % 2 === 0) quoted = mark
    if (/^# \/\/\/( script)?$/.test(said)) {
      header = said !== '# ///'
      continue
    }
    if (!said || header || said.startsWith('#!')) continue
    const within = open > 0
    open = Math.max(0, open + (line.match(/[([{]/g)?.length ?? 0) - (line.match(/[)\]}]/g)?.length ?? 0))
    if (said.startsWith('#')) {
      if (!within && line.startsWith('#') && !parts.lines.length) parts.comment ||= said.replace(/^#+\s*(?:%%\s*)?/, '')
      continue
    }
    const named = /^(?:async )?(?:def|class) (\w{1,60})/.exec(line)
    if (named?.[1]) parts.defines.push(named[1])
    const from = /^from (\S{1,60}) import|^import (.{1,200})/.exec(line)
    if (from)
      for (const module of (from[1] ?? from[2] ?? '').split(','))
        parts.imports.push(module.trim().split(/[\s.]/)[0] ?? '')
    if (within || /^(?:\s|"""|''')/.test(line) || aside.test(line)) continue
    parts.lines.push(said)
  }
  return parts
}

const file = (path: string) => path.split('/').findLast((part) => part) ?? path

/** A step's name: its first comment, what it reads, writes or draws, or the first line that does something. */
export function nameOf(code: string, w: StepNames): string {
  const { comment, lines, imports, defines } = partsOf(code)
  if (comment) return cut(comment)
  const texts = new Map<string, string>()
  const objectOf = (found: RegExpExecArray | null) => found?.groups?.text ?? texts.get(found?.groups?.name ?? '') ?? ''
  let written = ''
  for (const line of lines) {
    const known = given.exec(line)?.groups
    if (known?.name && known.text) texts.set(known.name, known.text)
    const read = objectOf(reading.exec(line))
    if (read && openedToWrite.test(line)) written ||= read
    else if (read) return cut(w.reads(file(read)))
    written ||= objectOf(writing.exec(line))
  }
  if (lines.some((line) => drawing.test(line))) {
    const title = lines.map((line) => titled.exec(line)?.groups?.text).find(Boolean)
    return cut(title ? w.draws(title) : w.draw)
  }
  if (written) return cut(w.writes(file(written)))
  const [first] = lines
  if (first) return cut(first)
  if (defines.length) return cut(w.defines(defines.join(', ')))
  const modules = [...new Set(imports.filter(Boolean))]
  if (modules.length) return cut(w.imports(modules.join(', ')))
  return cut(
    code
      .split('\n')
      .find((line) => line.trim() && !/^\s*[#%]/.test(line))
      ?.trim() ?? '',
  )
}
