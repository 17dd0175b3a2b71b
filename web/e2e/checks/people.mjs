// People: how they are invited, sign in with names and passwords, and what they show to others.
import { readFileSync } from 'node:fs'
import { check, env, expect, picture, sleep, until } from '../kit.mjs'
import { answered, ask, audit, composer, wrote } from '../people.mjs'

const password = 'correct horse battery'
// Several checks, and runs of one, are on the same server: nobody has the name twice.
const name = () => `eve-${Date.now().toString(36)}`

/** Calls the API as the server's first user. */
async function call(context, method, path, data) {
  const answer = await context.request.fetch(`api/v1/${path}`, {
    method,
    ...(data ? { data } : {}),
    headers: { Authorization: `Bearer ${env('COVE_KEY')}` },
  })
  expect(answer.ok(), `${method} ${path}: ${answer.status()} ${await answer.text()}`)
  return answer.status() === 204 ? null : await answer.json()
}

/** Looks at a screen in its sizes, languages and themes. */
async function screens(page, at, whole = true) {
  for (const [width, height] of [
    [390, 844],
    [900, 800],
    [1440, 900],
  ]) {
    await page.setViewportSize({ width, height })
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme })
      await picture(page, `people-${at}-${width}-${colorScheme}`)
    }
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
    expect(wide <= 0, `${at} scrolls sideways by ${wide} px at ${width} px`)
  }
  if (!whole) return
  await audit(page, `${at} (dark)`)
  await page.emulateMedia({ colorScheme: 'light' })
  await audit(page, `${at} (light)`)
}

await check('people: who is invited joins, asks, leaves and comes back with a password', {}, async (page, context) => {
  // The invitation is made on the page.
  const { project } = await call(context, 'GET', 'me')
  await page.goto(`admin/projects/${project}`)
  const section = page.locator('section', { has: page.getByRole('heading', { name: 'Invitations' }) })
  await section.getByRole('textbox', { name: 'For (name)' }).fill('Eve')
  await section.getByRole('button', { name: 'Invite' }).click()
  const address = await section.locator('input[readonly]').inputValue()
  expect(/\/#invitation=\w/.test(address), `the address is ${address}`)
  await section.getByText('Eve').first().waitFor()
  await screens(page, 'invitations', false) // the check of all screens audits the administration
  // It is opened by somebody else.
  const fresh = await context
    .browser()
    .newContext({ baseURL: `${env('COVE_BASE')}/`, locale: 'en-US', reducedMotion: 'reduce' })
  fresh.setDefaultTimeout(Number(env('COVE_PATIENCE') || 60_000))
  const eve = await fresh.newPage()
  await eve.goto(address)
  await eve.getByRole('heading', { name: /You are invited to/ }).waitFor()
  expect(!eve.url().includes('invitation'), `the address is ${eve.url()}`)
  await eve.getByText('This invitation is for Eve.').waitFor()
  await screens(eve, 'invited')
  await eve.setViewportSize({ width: 1280, height: 860 })
  const login = name()
  await eve.getByLabel('Name', { exact: true }).fill(login.toUpperCase())
  await eve.getByLabel('Password', { exact: true }).fill('short')
  await eve.getByText('5 of at least 10 characters').waitFor()
  await eve.getByRole('button', { name: 'Join' }).click()
  await eve.getByRole('alert').waitFor()
  await eve.getByLabel('Password', { exact: true }).fill(password)
  await eve.getByRole('button', { name: 'Join' }).click()
  await composer(eve).waitFor()
  await ask(eve, 'hello')
  await answered(eve, 'You said: hello')
  // Twice it does not work.
  const second = await fresh.newPage()
  await second.goto(address)
  await second.getByText('It was already used').waitFor()
  await second.getByRole('button', { name: 'Go to sign-in' }).click()
  await composer(second).waitFor()
  // A new password, and out.
  await eve.goto('settings')
  await eve.getByRole('button', { name: 'Change the password' }).click()
  const dialog = eve.getByRole('dialog')
  await screens(eve, 'password')
  await dialog.getByLabel('Current password', { exact: true }).fill('not the right one')
  await dialog.getByLabel('New password', { exact: true }).fill('another horse, another battery')
  await dialog.getByRole('button', { name: 'Set password' }).click()
  await dialog.getByText('The current password is not correct.').waitFor()
  await dialog.getByLabel('Current password', { exact: true }).fill(password)
  await dialog.getByRole('button', { name: 'Set password' }).click()
  await eve.getByText('Password set').waitFor()
  await eve.getByRole('button', { name: 'Sign out' }).first().click()
  // The way that was used last is the one that is shown.
  const field = eve.getByLabel('Name', { exact: true })
  await field.waitFor()
  expect((await field.getAttribute('autocomplete')) === 'username', 'the name has no autocomplete')
  await screens(eve, 'sign-in')
  await field.fill(login)
  await eve.getByLabel('Password', { exact: true }).fill(password)
  await eve.getByLabel('Password', { exact: true }).press('Enter')
  await eve.getByText('The name or password is not correct.').waitFor()
  await eve.getByLabel('Password', { exact: true }).fill('another horse, another battery')
  await eve.getByLabel('Password', { exact: true }).press('Enter')
  await eve.getByRole('heading', { name: 'Settings' }).waitFor()
  await fresh.close()
})

await check('people: a link for a new password signs in', { signedIn: false }, async (page, context) => {
  const login = name()
  const { code } = await call(context, 'POST', 'invitations', { role: 'viewer' })
  const joined = await context.request.post('api/v1/invitations/accept', {
    data: { code, user: login, password },
    headers: { 'Sec-Fetch-Site': 'same-origin' },
  })
  const { user } = await joined.json()
  await context.clearCookies()
  const link = await call(context, 'POST', 'invitations', { user })
  await page.goto(`./#invitation=${link.code}`)
  await page.getByRole('heading', { name: 'Set a new password' }).waitFor()
  await page.getByText(`You sign in as ${login}.`).waitFor()
  await screens(page, 'new-password')
  await page.getByLabel('New password', { exact: true }).fill('a third horse with a battery')
  await page.getByRole('button', { name: 'Set the password and sign in' }).click()
  await page.getByText('What do you want to know?').waitFor()
  // Who is signed in may join with one click, and an invitation that never was is said to be one.
  await page.evaluate(() => {
    location.hash = 'invitation=nothing'
  })
  await page.getByRole('heading', { name: 'This invitation does not work' }).waitFor()
  await picture(page, 'people-unknown')
})

await check('people: a link shows a conversation to anybody, until it is withdrawn', {}, async (page, context) => {
  await ask(page, "run: # Say the secret\nsecret = 6 * 7\nprint('secret is', secret)")
  await answered(page, 'It ran.')
  await page.getByRole('button', { name: 'Share and export' }).click()
  await page.getByRole('menuitem', { name: 'Share', exact: true }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('One question with its answer').waitFor()
  await screens(page, 'share')
  await page.setViewportSize({ width: 1280, height: 860 })
  await dialog.getByRole('button', { name: 'Create link' }).click()
  const address = await dialog.locator('input[readonly]').inputValue()
  await dialog.getByRole('button', { name: 'Create another link' }).click()
  await dialog.getByRole('checkbox').uncheck()
  await dialog.getByRole('button', { name: 'Create link' }).click()
  const bare = await dialog.locator('input[readonly]').inputValue()
  await picture(page, 'people-shared-link')
  const fresh = await context
    .browser()
    .newContext({ baseURL: `${env('COVE_BASE')}/`, locale: 'en-US', reducedMotion: 'reduce' })
  fresh.setDefaultTimeout(Number(env('COVE_PATIENCE') || 60_000))
  const reader = await fresh.newPage()
  const asked = []
  reader.on('request', (r) => r.url().includes('/api/') && asked.push(new URL(r.url()).pathname))
  await reader.goto(address)
  await reader.getByText('It ran.').waitFor()
  expect(!(await reader.getByText('secret is 42').count()), 'the steps are not folded')
  await screens(reader, 'shared')
  await wrote(reader, 'secret is 42')
  await reader.getByText('Created with cove').waitFor()
  expect(!(await reader.getByRole('textbox').count()), 'there is something to write in')
  await screens(reader, 'shared-open')
  await reader.getByRole('button', { name: '中文' }).click()
  await reader.getByText('由 cove 生成').waitFor()
  await screens(reader, 'shared-zh')
  await reader.getByRole('button', { name: 'English' }).click()
  await sleep(500)
  expect(
    asked.every((a) => /\/api\/v1\/shared\/[^/]+$/.test(a)),
    `it asks for ${asked}`,
  )
  await reader.goto(bare)
  await reader.getByText('Code and its output are not shown.').waitFor()
  await reader.getByText('It ran.').waitFor()
  expect(!(await reader.locator('[data-step]').count()), 'a link without code has steps')
  expect(!(await reader.getByText('secret is 42').count()), 'a link without code has output')
  // Both are withdrawn.
  const rows = dialog.getByRole('button', { name: 'Withdraw', exact: true })
  for (let n = 2; n > 0; n--) {
    await until(async () => (await rows.count()) === n, `${n} links are listed`)
    await rows.first().click()
    const sure = page.getByRole('alertdialog').or(page.getByRole('dialog', { name: 'Withdraw this link' }))
    await sure.getByRole('button', { name: 'Withdraw', exact: true }).click()
    await sure.waitFor({ state: 'detached' })
    await page.getByText('Link withdrawn.').first().waitFor()
  }
  await dialog.getByText('No links.').waitFor()
  await reader.goto(address)
  await reader.getByRole('heading', { name: 'This link does not work' }).waitFor()
  await picture(reader, 'people-gone')
  await fresh.close()
})

await check('people: a conversation is saved as a notebook and in other forms', {}, async (page) => {
  await ask(page, "run: print('kept', 6 * 7)")
  await answered(page, 'It ran.')
  const saved = async (form) => {
    await page.getByRole('button', { name: 'Share and export' }).click()
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('menuitem', { name: `Export as ${form}` }).click(),
    ])
    return { name: download.suggestedFilename(), text: readFileSync(await download.path(), 'utf8') }
  }
  const notebook = await saved('a notebook')
  expect(notebook.name.endsWith('.ipynb'), notebook.name)
  const { cells, nbformat } = JSON.parse(notebook.text)
  expect(
    nbformat === 4 && cells.some((c) => c.cell_type === 'code' && [c.source].flat().join('').includes("print('kept'")),
    notebook.text.slice(0, 500),
  )
  for (const [form, ending, word] of [
    ['Markdown', '.md', 'kept'],
    ['HTML', '.html', '<!DOCTYPE html'],
    ['Python', '.py', "print('kept'"],
  ]) {
    const { name: file, text } = await saved(form)
    expect(file.endsWith(ending) && text.toLowerCase().includes(word.toLowerCase()), `${file}: ${text.slice(0, 300)}`)
  }
})
