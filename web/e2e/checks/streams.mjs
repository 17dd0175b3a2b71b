// One stream for all windows of a browser, which has six connections to a server.
import { check, expect, picture, until } from '../kit.mjs'
import { answered, ask, goOn, waits, wrote } from '../people.mjs'

const streams = (path) => /\/api\/v1\/(events|turns\/[^/]+\/events|executions\/[^/]+\/events)/.test(path)

const slow = (n) =>
  `run: import time\nprint('window ${n} line', 0)\n${waits()}\nfor i in range(1, 12):\n    print('window ${n} line', i, flush=True)\n    time.sleep(0.1)`

await check(
  'nine windows follow nine questions, without a connection each',
  { part: 'scale' },
  async (page, context) => {
    const asked = []
    context.on('request', (request) => streams(new URL(request.url()).pathname) && asked.push(request.url()))
    const windows = [page]
    for (let n = 1; n < 9; n++) {
      const w = await context.newPage()
      await w.goto('./')
      windows.push(w)
    }
    // Each goes on once its window has shown that it began: a server runs fewer than nine at once.
    await Promise.all(
      windows.map(async (w, n) => {
        await ask(w, slow(n))
        await w.getByText(`window ${n} line 0`).first().waitFor()
        await goOn(w)
      }),
    )
    await Promise.all(windows.map((w) => answered(w, 'It ran.')))
    for (const [n, w] of windows.entries()) await wrote(w, `window ${n} line 11`)
    expect(!asked.length, `windows opened streams of their own: ${asked.join('\n')}`)
  },
)

await check(
  'what goes on elsewhere is seen, and a tab that nobody looks at says when it is done',
  {},
  async (page, context) => {
    const other = await context.newPage()
    await other.goto('./')
    // As when the person goes to another tab: a test's windows are all in front.
    await other.evaluate(() => {
      Object.defineProperty(document, 'hidden', { get: () => !window.looked, configurable: true })
      document.dispatchEvent(new Event('visibilitychange'))
    })
    const name = `mark-${Date.now()}`
    await ask(other, `run: print('${name}')\n${waits()}`)
    // Other checks work on answers beside this one: only the row of this conversation counts.
    const row = page.locator('nav li, aside li').filter({ has: page.getByRole('link', { name: new RegExp(name) }) })
    const mark = (what) => row.getByRole('img', { name: what })
    await row.waitFor()
    await mark('Answering').waitFor()
    await picture(page, 'elsewhere')
    await goOn(other)
    await until(async () => (await other.title()).startsWith('✓'), 'the mark of the tab')
    await mark('New answer').waitFor()
    await row.getByRole('link').click()
    await answered(page, 'It ran.')
    await mark('New answer').waitFor({ state: 'detached' })
    await other.evaluate(() => {
      window.looked = true
      document.dispatchEvent(new Event('visibilitychange'))
    })
    await until(async () => !(await other.title()).startsWith('✓'), 'the mark to go')
  },
)
