// A browser, and what every check of the page holds it to.
import { stripVTControlCharacters } from 'node:util'
import { chromium } from 'playwright-core'

export const env = (name) => process.env[name] ?? ''
const patience = Number(env('COVE_PATIENCE') || 180_000) // milliseconds: machines that run tests are busy

export const browser = await chromium.launch({
  executablePath: env('CHROMIUM'),
  args: [
    ...(process.getuid() === 0 ? ['--no-sandbox'] : []),
    '--disable-dev-shm-usage',
    // A name that is not this machine's own, and leads to it.
    `--host-resolver-rules=MAP ${env('COVE_FOREIGN_HOST') || 'cove.example'} 127.0.0.1`,
  ],
})

const problems = []
const running = new Set()
let checks = 0

// Whoever ends this early is told where it was.
process.on('SIGINT', () => {
  console.log(`FAILED  ended from outside during: ${[...running].join('; ') || 'nothing'}`)
  process.exit(1)
})

/**
 * Runs one check in a context of its own. What fails is told with a picture. `refused`: the policy refuses something here; `down`: the server is away for a while;
 * `part` is that of the test to which it belongs: 'first' is the way through the page that every change has to leave open, 'scale' is about many or much, 'usual' is all else.
 */
export async function check(name, { part = 'usual', ...options }, run) {
  if (env('COVE_ONLY') && !new RegExp(env('COVE_ONLY')).test(name)) return
  if (env('COVE_PART') && part !== env('COVE_PART')) return
  const number = ++checks
  const began = Date.now()
  running.add(name)
  const { server = 'COVE', signedIn = true, refused = false, down = false, ...rest } = options
  const base = env(`${server}_BASE`) || env(server)
  const home = new URL(base).origin
  const context = await browser.newContext({
    baseURL: `${base}/`,
    ignoreHTTPSErrors: true,
    viewport: { width: 1280, height: 860 },
    locale: 'en-US',
    timezoneId: 'UTC',
    reducedMotion: 'reduce',
    ...rest,
  })
  context.setDefaultTimeout(patience)
  const said = []
  // Seen and not held up, so that the browser keeps what it has loaded.
  context.on('request', (request) => {
    const { origin, protocol } = new URL(request.url())
    if (origin !== home && !['data:', 'blob:'].includes(protocol)) said.push(`a request to ${request.url()}`)
  })
  const page = await context.newPage()
  page.on('pageerror', (error) => said.push(`an error: ${error.message}`))
  page.on('console', (m) => {
    // What a frame may not do is told to the console, too; that is the frame's business.
    if (
      m.type() === 'error' &&
      !(down ? /status of|net::ERR_/ : /status of 4\d\d/).test(m.text()) &&
      !m.location().url.includes('/frame') &&
      // Chromium says of each page without TLS that it ignores this header.
      !(server === 'COVE_FOREIGN' && m.text().startsWith('The Cross-Origin-Opener-Policy header')) &&
      !(refused && m.text().includes('Content Security Policy'))
    )
      said.push(`the console: ${m.text()}`)
  })
  await page.addInitScript(() => {
    window.violations = []
    document.addEventListener('securitypolicyviolation', (e) =>
      window.violations.push(`${e.violatedDirective} ${e.blockedURI}`),
    )
  })
  try {
    if (signedIn) {
      const key = env(server === 'COVE' ? 'COVE_KEY' : `${server}_KEY`)
      const answer = await context.request.post('api/v1/sign-in', {
        data: { key },
        headers: { 'Sec-Fetch-Site': 'same-origin' },
      })
      if (!answer.ok()) throw new Error(`sign-in: ${answer.status()} ${await answer.text()}`)
      await page.goto('./')
    }
    // What Playwright does not bound itself, as a key that is pressed, is bounded here.
    let late
    const over = new Promise((_, fail) => {
      late = setTimeout(() => fail(new Error('the check does not end')), 4 * patience)
    })
    await Promise.race([run(page, context), over]).finally(() => clearTimeout(late))
    for (const v of (await page.evaluate(() => window.violations).catch(() => [])) ?? [])
      said.push(`the policy refused ${v}`)
    if (said.length) throw new Error(said.join('\n'))
    console.log(`ok  ${name} (${((Date.now() - began) / 1000).toFixed(1)} s)`)
  } catch (error) {
    problems.push(name)
    console.log(`FAILED  ${name}: ${brief(error)}\n${error.stack}\n${said.join('\n')}`)
    await page.screenshot({ path: `${process.cwd()}/failed-${number}.png` }).catch(() => {})
    console.log(
      (
        await page
          .locator('body')
          .innerText()
          .catch(() => '')
      ).slice(0, 3000),
    )
  }
  await context.close()
  running.delete(name)
}

/** What went wrong, what was waited for and where, in a line: of a long report no more is seen. */
function brief(error) {
  const [first, ...more] = stripVTControlCharacters(error.message).split('\n')
  const awaited = more.find((line) => line.includes('waiting for'))?.trim() ?? ''
  const where = error.stack?.match(/checks\/[\w.-]+:\d+/)?.[0] ?? ''
  return [first, awaited, where].filter(Boolean).join(' ')
}

export function expect(what, message) {
  if (!what) throw new Error(message)
}

/** Waits until f returns something. */
export async function until(f, message) {
  const end = Date.now() + patience
  for (;;) {
    const got = await f()
    if (got) return got
    if (Date.now() > end) throw new Error(`not in ${patience / 1000} s: ${message}`)
    await new Promise((done) => setTimeout(done, 100))
  }
}

/** Has the world around the server do something: hide, show, kill, stop. */
export async function order(what) {
  const answer = await fetch(`${env('COVE_ORDERS')}/${what}`, { method: 'POST' })
  expect(answer.ok, `${what}: ${answer.status}`)
}

export const sleep = (ms) => new Promise((done) => setTimeout(done, ms))

export async function picture(page, name) {
  if (env('COVE_PICTURES')) await page.screenshot({ path: `${env('COVE_PICTURES')}/${name}.png` })
}

export async function end() {
  await browser.close()
  console.log(`${checks} checks, ${problems.length} failed`)
  process.exit(problems.length || !checks ? 1 : 0)
}
