// Lists of what there is: sessions, what a search finds, and how they fit on a phone.
import { check, expect, picture, until } from '../kit.mjs'
import { answered, ask, composer } from '../people.mjs'

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
  await page.getByText('Also in a copy').waitFor()
  expect((await hits.count()) === 1, `${await hits.count()} conversations`)
  await page.getByRole('button', { name: /and 3 more in it/ }).click()
  const text = await hits.first().innerText()
  expect(text.includes(`You said: say ${word} one`), `the answer has marks of Markdown: ${text}`)
  await picture(page, 'search-groups')
})
