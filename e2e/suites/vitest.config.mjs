// How e2b.sh has vitest run the JavaScript tests of E2B's repositories: those for Node.js, with their own kind of isolation, and with time for a machine that is busy.
import { existsSync } from 'node:fs'
import { defineConfig } from 'vitest/config'

const setup = 'tests/globalFetchFallback.setup.ts'
const testTimeout = Number(process.env.TEST_SECONDS) * 1000

export default defineConfig({
  test: {
    include: ['tests/**/*.test.ts'],
    exclude: ['tests/runtimes/**', 'tests/bundle/**', '**/*.browser.test.ts'],
    setupFiles: existsSync(setup) ? [setup] : [],
    environment: 'node',
    isolate: true,
    maxWorkers: 4,
    testTimeout,
    hookTimeout: testTimeout,
    env: process.env,
  },
})
