// Runs JavaScript for a context: requests come as lines of JSON, and what is beside the output goes out in frames. See worker.go.
// Code runs as in Node's own prompt: declarations stay, and top-level await and the value of the last expression work.
const { existsSync } = require('node:fs')
const { createInterface } = require('node:readline')
const { inspect } = require('node:util')
const { PassThrough, Writable } = require('node:stream')
const mark = process.argv[1]
process.removeAllListeners('warning')

// Types are taken out by Node.js from 22.13 on, and before by TypeScript, where that is installed.
const places = [`${process.cwd()}/node_modules`, '/usr/local/lib/node_modules', '/usr/lib/node_modules', '/usr/share/nodejs']
const untyped = (code) => {
  const { stripTypeScriptTypes } = require('node:module')
  if (stripTypeScriptTypes) return stripTypeScriptTypes(code, { mode: 'transform' })
  let typescript
  for (const place of places) {
    if (!existsSync(`${place}/typescript/package.json`)) continue
    typescript = require(`${place}/typescript`)
    break
  }
  if (!typescript) throw new Error(`TypeScript takes Node.js 22.13 or newer, or the package typescript (Debian's node-typescript) on the host; this is ${process.version}`)
  const { transpileModule, flattenDiagnosticMessageText: said, ScriptTarget, ModuleKind, version } = typescript
  const keep = Number(version.split('.')[0]) < 5 ? { preserveValueImports: true, isolatedModules: true } : { verbatimModuleSyntax: true } // an import that only later code uses
  const out = transpileModule(code, { reportDiagnostics: true, compilerOptions: { target: ScriptTarget.ESNext, module: ModuleKind.ESNext, ...keep } })
  const wrong = out.diagnostics.find((d) => d.start !== undefined)
  if (wrong) throw new SyntaxError(said(wrong.messageText, '\n'))
  return out.outputText.replace(/^export \{\};\s*$/m, '')
}

const frame = (stream, kind, value) => new Promise((done) => stream.write(`\x1e${mark} ${kind} ${JSON.stringify(value) ?? 'null'}\n`, done))
const prompt = require('node:repl').start({
  input: new PassThrough(), output: new Writable({ write: (_chunk, _encoding, done) => done() }), prompt: '', terminal: false, breakEvalOnSigint: false, useGlobal: true,
})
let fail = null // the code that runs has failed; null: none runs
const failed = (error) => (fail ? fail(error) : process.stderr.write(`${inspect(error)}\n`))
process.on('SIGINT', () => failed(Object.assign(new Error('the execution was interrupted'), { name: 'KeyboardInterrupt' })))
process.on('uncaughtException', failed)
process.on('unhandledRejection', failed)
// A prompt of Node 20 and 22 gives what code throws to a domain of its own, which would print it.
prompt._domain?.removeAllListeners('error')
prompt._domain?.on('error', failed)

// A prompt takes no import declarations. The same names come of a dynamic import.
const imports = (code) =>
  code.replace(/^[ \t]*import\s+(?:([\w$]+)\s*,?\s*)?(?:\*\s*as\s+([\w$]+)|\{([^}]*)\})?\s*(?:from\s*)?(['"][^'"\n]+['"])[ \t]*;?/gm, (all, one, space, names, from) => {
    if (!one && !space && names === undefined) return /^\s*import\s+['"]/.test(all) ? `await import(${from});` : all
    const parts = []
    if (one) parts.push(`const { default: ${one} } = await import(${from});`)
    if (space) parts.push(`const ${space} = await import(${from});`)
    if (names !== undefined) parts.push(`const {${names.replace(/\s+as\s+/g, ': ')}} = await import(${from});`)
    return parts.join(' ')
  })

const evaluate = (code) =>
  new Promise((resolve, reject) => {
    fail = (error) => reject(error?.err ?? error)
    prompt.eval(code, prompt.context, 'cell', (error, value) => (error ? fail(error) : resolve(value)))
  }).finally(() => (fail = null))

// What of a traceback is the code's.
const own = (text) => text.split('\n').filter((at) => !/^\s+at .*(node:|\[eval\]|<anonymous>)/.test(at)).join('\n')

const apply = (variables) => {
  for (const [name, value] of Object.entries(variables ?? {})) value === null ? delete process.env[name] : (process.env[name] = value)
}

const run = async ({ code, language, before, behind }) => {
  try {
    apply(before)
    if (language === 'typescript') code = untyped(code)
    const value = await evaluate(`${imports(code)}\n`)
    if (value !== undefined) await frame(process.stdout, 'result', { 'text/plain': inspect(value) })
  } catch (error) {
    const named = error !== null && typeof error === 'object'
    await frame(process.stdout, 'error', { name: String((named && error.name) || 'Error'), value: String(named ? error.message : error), traceback: own(String((named && error.stack) || error)) })
  }
  apply(behind)
  await frame(process.stderr, 'done', 0)
  await frame(process.stdout, 'done', 0)
}

let last = Promise.resolve()
createInterface({ input: process.stdin }).on('line', (line) => (last = last.then(() => (line === '?' ? frame(process.stdout, 'ready') : run(JSON.parse(line))))))
