// Runs JavaScript or TypeScript that comes as its input, in a file of its own in the folder of work, so that imports are found from there.
const [language, ...args] = process.argv.slice(1)
const fs = require('node:fs')
const path = require('node:path')
let code = fs.readFileSync(0, 'utf8')
if (language === 'typescript') {
  const types = require('node:module').stripTypeScriptTypes
  if (!types) {
    console.error(`TypeScript takes Node.js 22.13 or newer; this is ${process.version}. Use language: 'javascript', or have the operator install a newer Node.js on the host.`)
    process.exit(1)
  }
  process.removeAllListeners('warning')
  code = types(code, { mode: 'transform' })
}
const isModule = /^\s*(import\s*[\w{*'"]|export\s)/m.test(code) || /^\s*(const|let|var)?.*\bawait\b/m.test(code.replace(/async[\s\S]*?\}/g, ''))
const file = path.join(process.cwd(), `.code-${process.pid}-${Date.now()}${isModule ? '.mjs' : '.cjs'}`)
fs.writeFileSync(file, code, { mode: 0o600 })
const remove = () => fs.rmSync(file, { force: true })
process.on('exit', remove)
process.argv = [process.argv[0], file, ...args]
import(require('node:url').pathToFileURL(file).href).then(remove, (error) => {
  console.error(error)
  process.exitCode = 1
  remove()
})
