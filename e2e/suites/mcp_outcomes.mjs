// Reads what the conformance tests of the Model Context Protocol said in a folder, and prints how each scenario ended, by name: node mcp_outcomes.mjs FOLDER VERSION.
// A scenario or a check that is about something which the tests' own example server has, and this server has not, is ABSENT, with what that is.
import fs from 'node:fs'
import path from 'node:path'

const [folder, version] = process.argv.slice(2)

// What checks say of a server that has not what they are about.
const absent = [
  [/unknown tool "([^"]+)"/, (m) => `the example server's tool ${m[1]}`],
  [/unknown prompt "([^"]+)"/, (m) => `the example server's prompt ${m[1]}`],
  [/Tool '(\w+)' not found/, (m) => `the example server's tool ${m[1]}`],
  [/diagnostic tool '(\w+)'/, (m) => `the example server's tool ${m[1]}`],
  [/no tool with x-mcp-header/, () => 'a tool whose arguments are in headers'],
  [/Expected InputRequiredResult|could not get initial InputRequiredResult/, () => "the example server's tools that ask"],
  [/completion\/complete/, () => 'completion, which is optional'],
  [/resources\/(un)?subscribe/, () => 'subscriptions to resources, which are optional'],
  [/task|Task/, () => 'tasks, an extension'],
]
const fixed = {
  'resources-read-text': "the example server's resource test://static-text",
  'resources-read-binary': "the example server's resource test://static-binary",
  'resources-templates-read': "the example server's resource test://template/123/data",
}

const counts = {}
for (const entry of fs.readdirSync(folder).sort()) {
  const file = path.join(folder, entry, 'checks.json')
  if (!fs.existsSync(file)) continue
  const scenario = entry.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT.*$/, '')
  const failed = []
  const lacking = new Set()
  const checks = JSON.parse(fs.readFileSync(file, 'utf8'))
  if (checks.some((c) => c.status === 'SKIPPED') && !checks.some((c) => ['SUCCESS', 'FAILURE', 'WARNING'].includes(c.status) && !/^wire-/.test(c.id))) lacking.add('the tests skip it')
  for (const check of checks) {
    if (check.status === 'WARNING' && scenario.startsWith('input-required-result-')) {
      lacking.add("the example server's tools that ask")
      continue
    }
    if (check.status !== 'FAILURE') continue
    const said = `${check.errorMessage ?? ''} ${scenario.startsWith('tasks-') ? 'task' : ''}`
    const known = absent.map(([pattern, name]) => [said.match(pattern), name]).find(([match]) => match)
    if (fixed[scenario]) lacking.add(fixed[scenario])
    else if (known) lacking.add(known[1](known[0]))
    else failed.push(`${check.id}: ${check.errorMessage}`)
  }
  const outcome = failed.length ? 'FAILED' : lacking.size ? 'ABSENT' : 'PASSED'
  counts[outcome] = (counts[outcome] ?? 0) + 1
  console.log(`${outcome} ${version}/${scenario}${failed.length ? ` (${failed.join('; ')})` : lacking.size ? ` (${[...lacking].join('; ')})` : ''}`)
}
console.log(`${version}: ${counts.PASSED ?? 0} scenarios passed, ${counts.FAILED ?? 0} failed, ${counts.ABSENT ?? 0} are about what this server has not`)
process.exitCode = counts.FAILED ? 1 : 0
