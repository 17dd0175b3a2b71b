// Writes the charts of cases.ts with their code, as JSON, into a file: TestChartCode runs them in Python.
import { writeFileSync } from 'node:fs'
import { createServer } from 'vite'

const server = await createServer({
  configFile: false,
  logLevel: 'error',
  server: { middlewareMode: true, ws: false, hmr: false },
  optimizeDeps: { noDiscovery: true },
})
const { cases } = await server.ssrLoadModule('/src/chart/cases.ts')
writeFileSync(process.argv[2], JSON.stringify(cases()))
await server.close()
