// Every screen, by everybody: languages, themes, assistive technology.
import { check, env, expect, picture, until } from '../kit.mjs'
import { answered, ask, audit, composer, wrote } from '../people.mjs'
import { tour } from '../tour.mjs'

await check('in Chinese, with an input method', { locale: 'zh-CN' }, async (page, context) => {
  const field = page.getByRole('textbox').first()
  await field.waitFor()
  const text = await page.locator('body').innerText()
  const titles = await page.locator('a[href*="/c/"]').allInnerTexts() // what was asked is not ours to translate
  const english = text
    .split('\n')
    .filter((line) => /[a-z]{3,} [a-z]{3,} [a-z]{3,}/i.test(line) && !titles.some((t) => t.includes(line)))
  expect(!english.length, `in English: ${english}`)
  const input = await context.newCDPSession(page)
  await field.focus()
  await input.send('Input.imeSetComposition', { text: 'zengzhang', selectionStart: 9, selectionEnd: 9 })
  await input.send('Input.dispatchKeyEvent', {
    type: 'keyDown',
    key: 'Enter',
    code: 'Enter',
    windowsVirtualKeyCode: 229,
  })
  expect(!/\/c\//.test(page.url()), 'Enter during a composition has sent the question')
  await input.send('Input.insertText', { text: '哪个地区增长最快？' })
  await page.locator('input[type=file]').first().setInputFiles(env('COVE_SALES'))
  await page.getByText('sales.csv').first().waitFor()
  await field.press('Enter')
  await page.getByText('海外增长最快。').first().waitFor()
  expect(
    await page.locator('strong', { hasText: '海外增长最快。' }).count(),
    'bold text beside Chinese punctuation is not bold',
  )
  expect((await page.locator('html').getAttribute('lang')).startsWith('zh'), 'the language is not said')
  await picture(page, 'zh')
})

await check('screens: nothing serious is found on any, in both themes', { part: 'scale' }, async (page) => {
  let screens = 0
  const found = []
  await tour(page, async (at) => {
    screens++
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme })
      // The themes differ in their colours alone.
      const rules = colorScheme === 'dark' ? ['color-contrast', 'link-in-text-block'] : null
      await audit(page, `${at} (${colorScheme})`, rules).catch((error) => found.push(error.message))
      await picture(page, `screen-${at.replace('./', 'start').replace(/\W+/g, '-')}-${colorScheme}`)
    }
  })
  expect(screens >= 25, `${screens} screens`)
  expect(!found.length, found.join('\n\n'))
})

await check('the history is searched, and never in the middle of a composition', {}, async (page, context) => {
  const asked = []
  page.on('request', (r) => r.url().includes('/search?') && asked.push(r.url()))
  await composer(page).waitFor()
  await page.keyboard.press('Control+k')
  await page.getByRole('option', { name: 'Audit log' }).waitFor()
  await page.keyboard.press('Escape')
  await page.goto('search')
  const field = page.getByRole('searchbox')
  await field.focus()
  const input = await context.newCDPSession(page)
  await input.send('Input.imeSetComposition', { text: 'liu', selectionStart: 3, selectionEnd: 3 })
  await page.waitForTimeout(800)
  expect(!asked.length, `asked while composing: ${asked}`)
  await input.send('Input.insertText', { text: '流失的企鹅' })
  await page.getByText('No results for').waitFor()
  expect(asked.length === 1, `asked ${asked.length} times`)
})

await check('without a model it is a notebook', { server: 'COVE_ALONE' }, async (page) => {
  const editor = page.locator('.cm-content').first()
  await editor.waitFor()
  await editor.click()
  await page.keyboard.type('1+1')
  await page.keyboard.press('Control+Enter')
  await page.getByText('2', { exact: true }).first().waitFor()
  // The kernel completes what is typed behind an emoji as well, and says what a name stands for.
  await page.getByRole('button', { name: 'Add a cell' }).click()
  const added = page.locator('.cm-content').nth(1)
  await until(() => added.evaluate((e) => e === document.activeElement), 'the cursor is in the new cell')
  await page.keyboard.type("smile = '😀'; print(smile, str.")
  const option = page.getByRole('option', { name: 'capitalize' })
  await option.waitFor() // offered behind the dot
  await page.keyboard.type('ca')
  await page.keyboard.press('Escape')
  await option.waitFor({ state: 'detached' })
  await page.keyboard.press('Tab')
  await option.waitFor()
  await until(async () => {
    await page.waitForTimeout(200) // a list takes keys only when it has been seen
    if (!(await added.innerText()).includes('capitalize')) await page.keyboard.press('Tab')
    return (await added.innerText()).includes('str.capitalize')
  }, 'the name is completed')
  await page.keyboard.press('Shift+Tab')
  await page.getByText('Prints the values to a stream').waitFor()
  await picture(page, 'described')
  await page.keyboard.press('Escape')
  await page.getByText('Prints the values to a stream').waitFor({ state: 'detached' })
  await page.keyboard.type("('ok'))")
  await page.keyboard.press('Control+Enter')
  await page.getByText('😀 Ok').first().waitFor()
  await page.getByText('Connect a model to ask questions').first().waitFor()
  await picture(page, 'notebook')
  await audit(page, 'the notebook')
  await page.getByRole('link', { name: 'Connect a service here' }).click()
  await page.getByRole('button', { name: 'Connect a provider' }).click()
  const form = page.getByRole('form', { name: 'Connect a provider' })
  const address = form.getByLabel('Address')
  await address.fill('http://127.0.0.1:9/v1')
  await form.getByLabel('Key', { exact: true }).fill('sk-of-the-form-1234')
  await form.getByRole('button', { name: 'Test' }).click()
  await form.getByRole('alert').waitFor()
  await picture(page, 'connection-refused')
  await address.fill(env('COVE_SERVICE'))
  await form.getByLabel('Default model').fill('scripted')
  await form.getByRole('button', { name: 'Test' }).click()
  await form.getByRole('status').waitFor()
  await picture(page, 'connection')
  await audit(page, 'a connection')
  await form.getByRole('button', { name: 'Connect', exact: true }).click()
  await page.getByText('key …1234').waitFor()
  await form.waitFor({ state: 'detached' }) // which has the key in its field until it is closed
  expect(!(await page.content()).includes('sk-of-the-form'), 'the key is on the page')
  // Without a restart: the first page asks for a question now, and it is answered.
  await page.goto('./')
  await ask(page, "run: print('connected', 6 * 7)")
  await answered(page, 'It ran.')
  await wrote(page, 'connected 42')
  // The model has named the conversation.
  await page.getByRole('link', { name: 'A number, printed' }).waitFor()
  await page.goto('./admin/models')
  await page.getByRole('button', { name: /OpenAI or compatible/ }).click()
  await page.getByRole('menuitem', { name: 'Disconnect' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Disconnect' }).click()
  await page.getByText('key …1234').waitFor({ state: 'detached' })
})
