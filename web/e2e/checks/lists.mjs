// Lists of what there is: sessions, what a search finds, and how they fit on a phone.
import { check, expect, picture, until } from '../kit.mjs'
import { answered, ask, audit, composer, ended, unfold } from '../people.mjs'

/** Asks about a file with a word of its own, and waits for the end. */
async function askAbout(page, word) {
  await page.locator('input[type=file]').setInputFiles({
    name: `${word}.csv`,
    mimeType: 'text/csv',
    buffer: Buffer.from('region,revenue\nOverseas,1\n'),
  })
  await page.getByText(`${word}.csv`).first().waitFor()
  await composer(page).fill(`run: print("${word} was read")`)
  await until(async () => {
    await composer(page).press('Enter')
    return page.url().includes('/c/')
  }, 'asked')
  await answered(page, 'It ran.')
}

await check('sessions are known by their conversations and files', {}, async (page) => {
  const word = `quarry${Date.now() % 1e6}`
  await askAbout(page, word)
  await page.getByRole('link', { name: 'Sessions' }).click()
  const row = page.getByRole('listitem').filter({ hasText: `${word}.csv` })
  await row.getByText(`run: print("${word}`).waitFor()
  expect(!(await page.locator('main').innerText()).includes('ses_'), 'an id is shown')
  await picture(page, 'sessions')
  await row.getByRole('button', { name: /^Actions/ }).click()
  await page.getByRole('menuitem', { name: 'Delete' }).click()
  await page.getByRole('dialog').getByText(word).first().waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
  await page.goto('admin/sessions')
  await page
    .getByRole('rowheader')
    .filter({ hasText: `${word}.csv` })
    .waitFor()
})

await check('what a search finds is plain text, by conversation, forks with what they are of', {}, async (page) => {
  const word = `heron${Date.now() % 1e6}`
  // Two questions with the word, in one conversation, of which a fork is made.
  await ask(page, `say **${word}** one`)
  await until(async () => page.url().includes('/c/'), 'in the conversation')
  await page.getByRole('button', { name: 'Answer again' }).first().waitFor()
  await ask(page, `say **${word}** two`)
  await until(async () => (await page.getByRole('button', { name: 'Answer again' }).count()) === 2, 'both are answered')
  const { id } = await (
    await page.request.post(`api/v1/conversations/${page.url().match(/cnv_[0-9a-z]+/)[0]}/fork`, {
      data: {},
      headers: { 'Sec-Fetch-Site': 'same-origin' },
    })
  ).json()
  expect(id, 'a fork')
  const places = async () => (await (await page.request.get(`api/v1/search?q=${word}`)).json()).items
  await until(async () => (await places()).length === 8, 'questions and answers of both are found').catch(async (e) => {
    throw new Error(`${e.message}: ${JSON.stringify(await places())}`)
  })
  await page.goto(`search?q=${word}`)
  const hits = page.locator('main').getByRole('listitem')
  await hits.first().waitFor()
  await page.getByText('Also in 1 related conversation:').waitFor()
  expect((await hits.count()) === 1, `${await hits.count()} conversations`)
  const copy = await hits.first().getByRole('link').last().getAttribute('href')
  expect(/\/c\/cnv_\w+\?turn=trn_/.test(copy ?? ''), `the copy is no link: ${copy}`)
  await page.getByRole('button', { name: /and 3 more in it/ }).click()
  const text = await hits.first().innerText()
  expect(text.includes(`You said: say ${word} one`), `the answer has marks of Markdown: ${text}`)
  await picture(page, 'search-groups')
})

const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }

await check('on a phone titles are read, words are whole and targets are large', { ...phone }, async (page) => {
  await ask(page, 'say something about penguins')
  await answered(page, 'You said: say something about penguins')
  const title = page.getByRole('heading', { level: 1 })
  await until(async () => (await title.boundingBox())?.width > 120, 'the title has room')
  await page.getByRole('button', { name: 'Notebook', exact: true }).waitFor()
  const small = await page.evaluate(() =>
    [...document.querySelectorAll('main button, main a, main [role=button]')]
      .filter((e) => e.checkVisibility() && e.getBoundingClientRect().width > 0 && !e.closest('p'))
      .filter((e) => e.getBoundingClientRect().height < 43)
      .map((e) => `${e.getAttribute('aria-label') ?? e.textContent} ${e.getBoundingClientRect().height}`),
  )
  expect(!small.length, `small targets: ${small.join(', ')}`)
  await audit(page, 'a conversation on a phone')
  await picture(page, 'phone-conversation')
  await page.goto('admin/audit')
  await page.getByRole('columnheader').first().waitFor()
  const broken = await page.evaluate(() =>
    [...document.querySelectorAll('main td, main tbody th')]
      .filter((e) => e.getBoundingClientRect().height > 60)
      .map((e) => e.textContent),
  )
  expect(!broken.length, `broken: ${broken.slice(0, 3).join(', ')}`)
  const field = page.getByPlaceholder('User, key or address')
  expect(await field.evaluate((e) => e.getBoundingClientRect().width > 200), 'the placeholder is cut')
  await picture(page, 'phone-audit')
  await page.goto('admin/models')
  await page.getByRole('row').first().waitFor()
  await picture(page, 'phone-models')
})

await check('the list at the side is one stop of Tab, which the arrows go through', {}, async (page) => {
  for (const n of [1, 2, 3]) {
    await page.goto('./')
    await ask(page, `say ${n} for the list`)
    await answered(page, `You said: say ${n} for the list`)
  }
  const stops = page.locator('nav li a[tabindex="0"], nav li button:not([tabindex="-1"])')
  await until(async () => (await stops.count()) === 1, 'one stop')
  await page.getByRole('button', { name: 'Skip to conversation' }).focus()
  await picture(page, 'skip')
  await page.keyboard.press('Enter')
  await until(() => page.evaluate(() => !!document.activeElement?.closest('[data-turn]')), 'at the conversation')
  await stops.first().focus()
  // Other checks ask on the same server: which conversations there are beside these is not known.
  const at = () => page.evaluate(() => document.activeElement?.closest('nav li a')?.getAttribute('href'))
  const first = await at()
  await page.keyboard.press('ArrowDown')
  await until(async () => (await at()) && (await at()) !== first, 'the next one')
  await page.keyboard.press('ArrowRight')
  await until(
    async () => /^Actions/.test(await page.evaluate(() => document.activeElement?.ariaLabel ?? '')),
    'its actions',
  )
  await page.keyboard.press('ArrowLeft')
  await page.keyboard.press('Home')
  await until(
    async () => (await at()) === (await page.locator('nav li a').first().getAttribute('href')),
    'the first one',
  )
  expect((await stops.count()) === 1, 'one stop')
})

for (const [name, options] of [
  ['dark', { colorScheme: 'dark' }],
  ['Chinese', { locale: 'zh-CN' }],
])
  await check(`tables have names of their own, and axe finds nothing: ${name}`, { ...options }, async (page) => {
    const box = page.getByRole('textbox', { name: /^(Your question|你的问题)$/ })
    const code = "import pandas as pd\nfor n in (1, 2): display(pd.DataFrame({'n': [n] * 3}))"
    await box.fill(`run: ${code}`)
    await box.press('Enter')
    await answered(page, 'It ran.')
    await ended(page)
    await unfold(page)
    const grids = page.getByRole('grid')
    await until(async () => (await grids.count()) === 2, 'two tables')
    const names = await grids.evaluateAll((all) => all.map((g) => g.ariaLabel))
    expect(new Set(names).size === 2, `both are called ${names}`)
    await audit(page, `a conversation with tables, ${name}`)
    await audit(page, `the names of its regions, ${name}`, ['landmark-unique'])
    await picture(page, `tables-${name}`)
    for (const at of ['settings', 'sessions', 'search?q=ran', 'admin/models', 'admin/usage']) {
      await page.goto(at)
      await page.getByRole('heading', { level: 1 }).waitFor()
      await audit(page, `${at}, ${name}`)
    }
  })

await check(
  'what is small is right: toasts, titles at the side, the menu of Administration, items',
  { permissions: ['clipboard-read', 'clipboard-write'] },
  async (page) => {
    const long = 'say what a title of more than twenty-two letters is'
    await ask(page, long)
    await answered(page, `You said: ${long}`)
    const link = page.locator('nav li a').first()
    const [row, title] = [await page.locator('nav li').first().boundingBox(), await link.boundingBox()]
    await page.mouse.move(900, 300)
    await composer(page).focus()
    await until(
      async () => (await link.boundingBox()).width > row.width - 30,
      `the title has ${title.width} of ${row.width}`,
    )
    await ask(page, "run: from IPython.display import JSON\nJSON({'a': 1})")
    await answered(page, 'It ran.')
    await ended(page)
    await unfold(page)
    await page.getByText('{ 1 item }').waitFor()
    await page.getByRole('button', { name: 'Copy the answer' }).last().click()
    const toast = await page.getByRole('status').filter({ hasText: 'Copied' }).locator('p').boundingBox()
    const send = await page.getByRole('button', { name: 'Send' }).boundingBox()
    expect(toast.y + toast.height < send.y, 'the toast covers Send')
    const menu = () => page.getByRole('navigation', { name: 'Administration' }).getByRole('listitem').allInnerTexts()
    await page.goto('admin/projects')
    await until(async () => (await menu()).length === 8, 'all sections')
    const before = await menu()
    await page.getByRole('navigation', { name: 'Administration' }).getByRole('link', { name: 'Keys' }).click()
    await page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor()
    expect(`${await menu()}` === `${before}`, `${await menu()} after ${before}`)
  },
)
