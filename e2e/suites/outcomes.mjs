// Prints how tests ended of vitest's JSON: outcomes.mjs FILE
import { readFileSync } from 'node:fs'
import { relative } from 'node:path'

const words = { passed: 'PASSED', failed: 'FAILED' }
for (const file of JSON.parse(readFileSync(process.argv[2], 'utf8')).testResults) {
  const name = relative(process.cwd(), file.name)
  if (file.assertionResults.length === 0) console.log(`ERROR ${name} ${(file.message ?? '').split('\n')[0]}`)
  for (const test of file.assertionResults) {
    if (!words[test.status]) continue
    console.log(`${words[test.status]} ${name} > ${test.fullName.replace(/\s+/g, ' ')}`)
    if (process.env.E2B_SAID && test.status === 'failed') console.error(`${name} > ${test.fullName}\n${test.failureMessages.join('\n').slice(0, 2000)}\n`)
  }
}
