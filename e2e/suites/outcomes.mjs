// Prints how tests ended of vitest's JSON, with a number behind a name that a file has more than once: outcomes.mjs FILE
import { readFileSync } from 'node:fs'
import { relative } from 'node:path'

const words = { passed: 'PASSED', failed: 'FAILED' }
for (const file of JSON.parse(readFileSync(process.argv[2], 'utf8')).testResults) {
  const name = relative(process.cwd(), file.name)
  if (file.assertionResults.length === 0) console.log(`ERROR ${name} ${(file.message ?? '').split('\n')[0]}`)
  const seen = {}
  for (const test of file.assertionResults) {
    const title = test.fullName.replace(/\s+/g, ' ')
    seen[title] = (seen[title] ?? 0) + 1
    if (!words[test.status]) continue
    console.log(`${words[test.status]} ${name} > ${title}${seen[title] > 1 ? ` (${seen[title]})` : ''}`)
    if (process.env.E2B_SAID && test.status === 'failed') console.error(`${name} > ${test.fullName}\n${test.failureMessages.join('\n').slice(0, 2000)}\n`)
  }
}
