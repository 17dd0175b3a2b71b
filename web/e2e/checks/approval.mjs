// Code that is shown before it runs.
import { check, expect, picture } from '../kit.mjs'
import { answered, ask } from '../people.mjs'

const waiting = (page) => page.getByRole('textbox', { name: 'Code waiting for approval' })
const asks = (page) => page.getByRole('switch', { name: 'Show me the code before it runs' })

await check('code waits for approval, over a reload, and runs as it was changed', {}, async (page) => {
  await asks(page).click()
  await ask(page, "run: print('as the model wrote it')")
  await waiting(page).waitFor()
  await page.waitForFunction(() => document.title.includes('Waiting for approval'))
  await page.reload()
  await waiting(page).waitFor()
  expect((await asks(page).getAttribute('aria-checked')) === 'true', 'the conversation does not ask any more')
  await picture(page, 'approval')
  await waiting(page).click()
  await page.keyboard.press('Control+a')
  // What is written over coloured text gets its colour from Chromium, in a style that the policy refuses; the editor draws the line anew at once.
  await page.keyboard.press('Delete')
  await page.keyboard.insertText("print('as I ' + 'changed it')")
  await page.getByRole('button', { name: 'Run with my changes' }).waitFor()
  await page.keyboard.press('Control+Enter')
  await answered(page, 'It ran.')
  await page.getByText('changed by you').first().waitFor()
})

await check('code that waits for approval is refused, and the model goes on', {}, async (page) => {
  await asks(page).click()
  await ask(page, "run: print('never')")
  await waiting(page).waitFor()
  await page.getByRole('button', { name: 'Skip', exact: true }).click()
  await page.getByLabel('Optional note to the model').fill('not today')
  await page.getByRole('button', { name: 'Skip it' }).click()
  await answered(page, 'It ran.')
  await page.getByText('not run', { exact: true }).first().waitFor()
})

await check('a question does not overtake the wish to see its code', {}, async (page) => {
  await ask(page, 'hello')
  await answered(page, 'You said: hello')
  await page.route('**/api/v1/conversations/cnv_*', async (route) => {
    if (route.request().method() === 'PATCH') await new Promise((done) => setTimeout(done, 2000))
    await route.fallback()
  })
  await asks(page).click()
  await ask(page, "run: print('not yet')")
  await waiting(page).waitFor()
  await page.getByRole('button', { name: 'Skip', exact: true }).click()
  await page.getByRole('button', { name: 'Skip it' }).click()
  await answered(page, 'It ran.')
})
