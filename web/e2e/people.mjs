// What people do with the page, for checks to be written with.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { env, expect, until } from './kit.mjs'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
export const composer = (page) => page.getByRole('textbox', { name: 'Your question' })

export async function ask(page, text) {
  await composer(page).fill(text)
  await composer(page).press('Enter')
}

/** Code that waits until the check lets it go on, two minutes at most: a server runs few at once. */
export const waits = (name = 'go') =>
  `import os, time\nfor _ in range(2400):\n    if os.path.exists('${name}'): break\n    time.sleep(0.05)`

/** Lets code go on that waits, in the conversation that the page shows. */
export async function goOn(page, name = 'go') {
  const conversation = await until(async () => page.url().match(/\/c\/(cnv_[0-9a-z]+)/)?.[1], 'the conversation')
  const turns = await (await page.request.get(`api/v1/conversations/${conversation}/turns`)).json()
  const session = turns.items.find((t) => t.session)?.session
  expect(session, `no session: ${JSON.stringify(turns)}`)
  const put = await page.request.put(`api/v1/sessions/${session}/files/${name}`, {
    data: Buffer.from('go'),
    headers: { 'Content-Type': 'application/octet-stream', 'Sec-Fetch-Site': 'same-origin' },
  })
  expect(put.ok(), `${put.status()} ${await put.text()}`)
}

/** Calls fn with a page on which a viewer of the project is signed in. */
export async function asViewer(context, fn) {
  const call = async (method, path, data) => {
    const answer = await context.request.fetch(`api/v1/${path}`, {
      method,
      ...(data ? { data } : {}),
      headers: { Authorization: `Bearer ${env('COVE_KEY')}` },
    })
    expect(answer.ok(), `${method} ${path}: ${answer.status()} ${await answer.text()}`)
    return await answer.json()
  }
  const { project } = await call('GET', 'me')
  const user = (await call('POST', 'users', { name: `viewer-${Date.now().toString(36)}` })).id
  await call('PUT', `projects/${project}/members/${user}`, { role: 'viewer' })
  const { text: key } = await call('POST', 'keys', { name: 'viewer', project, user })
  const fresh = await context
    .browser()
    .newContext({ baseURL: `${env('COVE_BASE')}/`, locale: 'en-US', reducedMotion: 'reduce' })
  fresh.setDefaultTimeout(Number(env('COVE_PATIENCE') || 180_000))
  const signed = await fresh.request.post('api/v1/sign-in', {
    data: { key },
    headers: { 'Sec-Fetch-Site': 'same-origin' },
  })
  expect(signed.ok(), await signed.text())
  await fn(await fresh.newPage())
  await fresh.close()
}

/** Writes a cell at the end of the notebook and runs it. */
export async function cell(page, code) {
  await page.locator('.cm-content').first().waitFor()
  const before = await page.locator('[data-cell]').count()
  await page.getByRole('button', { name: 'Add a cell' }).click()
  const added = page.locator('[data-cell]').nth(before)
  await added.locator('.cm-content').click()
  await page.keyboard.insertText(code)
  await page.keyboard.press('Control+Enter')
}

export const answered = (page, text) => page.getByText(text).last().waitFor()

/** Waits until no turn runs: the steps of a turn are open while it runs, and fold by themselves at its end, which may be after its answer is seen. */
export const ended = (page) =>
  until(async () => !(await page.locator('[data-turn] [role="log"]').count()), 'the turns have ended')

export async function unfold(page) {
  for (const step of await page.locator('[data-step][aria-expanded="false"]').all())
    await step.click({ timeout: 1000 }).catch(() => {})
}

/** Waits until the page has asked for nothing for a moment. The stream of events, which stays open, is a worker's. */
export const settled = (page) =>
  page.evaluate(
    () =>
      new Promise((done) => {
        let before = -1
        const look = () => {
          const now = performance.getEntriesByType('resource').length
          if (now === before) return done()
          before = now
          setTimeout(look, 400)
        }
        look()
      }),
  )

/** Waits for a text in what a step wrote, unfolding the steps. */
export const wrote = (page, text) =>
  until(async () => {
    await unfold(page)
    return page.getByText(text).count()
  }, text)

/** Holds a screen to have nothing serious that axe finds, or nothing at all by these rules. */
export async function audit(page, where, rules) {
  // The page's policy allows no script of ours in it: axe is evaluated by the browser itself.
  await page.waitForFunction(() =>
    document
      .getAnimations()
      .every((a) => a.playState !== 'running' || a.effect.getComputedTiming().iterations === Infinity),
  )
  await page.evaluate(axe)
  const found = await page.evaluate(
    (rules) => window.axe.run(document, { resultTypes: ['violations'], ...(rules ? { runOnly: rules } : {}) }),
    rules,
  )
  const serious = found.violations.filter((v) => rules || ['serious', 'critical'].includes(v.impact))
  expect(
    !serious.length,
    `${where}: ${serious
      .map(
        (v) =>
          `${v.id}: ${v.help}\n${v.nodes
            .slice(0, 3)
            .map((n) => n.html.slice(0, 200))
            .join('\n')}`,
      )
      .join('\n')}`,
  )
}
