// Signing in, and what a browser that is signed in may do.
import { check, env, expect, picture } from '../kit.mjs'
import { composer } from '../people.mjs'

await check(
  'the printed address signs in once, and leaves no secret',
  { part: 'first', signedIn: false },
  async (page, context) => {
    await page.goto(env('COVE_SETUP'))
    await composer(page).waitFor()
    expect(!page.url().includes('setup'), `the address is ${page.url()}`)
    const [cookie] = await context.cookies()
    expect(cookie.httpOnly && cookie.sameSite === 'Strict', `the cookie is ${JSON.stringify(cookie)}`)
    await context.clearCookies()
    await page.goto('about:blank')
    await page.goto(env('COVE_SETUP'))
    await page.getByLabel('Key', { exact: true }).waitFor()
    expect((await page.locator('main').innerText()).includes('cove open'), 'it is not said how to get another code')
    await picture(page, 'sign-in')
  },
)

await check('a key signs in, and a wrong one is refused in words', { part: 'first', signedIn: false }, async (page) => {
  await page.goto('./')
  const field = page.getByLabel('Key', { exact: true })
  await field.fill('cove_wrong')
  await field.press('Enter')
  await page.getByRole('alert').waitFor()
  await field.fill(env('COVE_KEY'))
  await field.press('Enter')
  await composer(page).waitFor()
})

await check('a page of somebody else cannot use the cookie', { part: 'first' }, async (_page, context) => {
  const answer = await context.request.post('api/v1/sessions', {
    data: {},
    headers: { 'Sec-Fetch-Site': 'cross-site', Origin: 'http://evil.invalid' },
  })
  expect(answer.status() === 403, `a form of another site is answered with ${answer.status()}`)
  const openai = await context.request.get('v1/models')
  expect(openai.status() === 401, `OpenAI's interface takes the cookie: ${openai.status()}`)
})

await check(
  'without TLS and from elsewhere it is said before a secret is sent',
  { server: 'COVE_FOREIGN', signedIn: false },
  async (page) => {
    const sent = []
    page.on('request', (r) => r.method() === 'POST' && sent.push(r.url()))
    await page.goto('./')
    const warning = page.getByText('This connection is not encrypted')
    await page.getByLabel('Key', { exact: true }).waitFor()
    await warning.waitFor()
    await page.getByRole('button', { name: 'Use a name and a password' }).click()
    await page.getByLabel('Password', { exact: true }).waitFor()
    await warning.waitFor()
    expect(!sent.length, `sent before it was said: ${sent}`)
    await picture(page, 'sign-in-plain')
    await page.goto('./#invitation=nothing')
    await page.reload()
    // It still signs in: the warning is no refusal.
    await page.goto('./')
    await page
      .getByRole('button', { name: 'Use a key' })
      .click({ timeout: 2000 })
      .catch(() => {})
    await page.getByLabel('Key', { exact: true }).fill(env('COVE_FOREIGN_KEY'))
    await page.getByLabel('Key', { exact: true }).press('Enter')
    await composer(page).waitFor()
  },
)

await check('with TLS, and from this machine, it is not', { server: 'COVE_SECURE', signedIn: false }, async (page) => {
  await page.goto('./')
  await page.getByLabel('Key', { exact: true }).waitFor()
  expect(!(await page.getByText('This connection is not encrypted').count()), 'it warns with TLS')
})
