// What the page says of errors of the server: in words of its own, with what the reader can do.
import { check, expect, picture, until } from '../kit.mjs'
import { ask, composer } from '../people.mjs'

for (const [locale, key, words] of [
  ['en-US', 'Key', ['The key is not correct.', 'Check the key and try again.']],
  ['zh-CN', '密钥', ['密钥不正确。', '请检查后重试。']],
])
  await check(
    `a wrong key is refused in words of ${locale}, not of the API`,
    { signedIn: false, locale },
    async (page) => {
      await page.goto('./')
      const field = page.getByLabel(key, { exact: true })
      await field.fill('cove_wrong')
      await field.press('Enter')
      const said = page.getByRole('alert')
      for (const line of words) await said.getByText(line, { exact: true }).waitFor()
      expect(!(await said.innerText()).includes('Bearer'), await said.innerText())
      await picture(page, `problem-key-${locale}`)
    },
  )

await check('an admin is led from a refused key to the model service', {}, async (page) => {
  await ask(page, 'refuse the key')
  const said = page.getByRole('alert')
  await said.getByText('The model service refused the server’s key.', { exact: true }).waitFor()
  expect(!(await said.innerText()).includes('provider of the model'), await said.innerText())
  await picture(page, 'problem-model')
  await said.getByText('Details').click()
  await said.getByText('the provider of the model does not take').waitFor()
  await said.getByRole('link', { name: 'Check the model service' }).click()
  await page.getByRole('heading', { name: 'Model providers' }).waitFor()
})

await check('who may not see to the model service asks again', { locale: 'zh-CN' }, async (page) => {
  await page.route(/\/api\/v1\/me$/, async (route) => {
    const answer = await route.fetch()
    await route.fulfill({ response: answer, json: { ...(await answer.json()), admin: false, role: 'member' } })
  })
  await page.reload()
  const box = page.getByRole('textbox', { name: '你的问题' })
  await box.fill('refuse the key')
  await box.press('Enter')
  const said = page.getByRole('alert')
  await said.getByText('模型服务拒绝了服务器的密钥。', { exact: true }).waitFor()
  expect(!(await said.getByRole('link').count()), 'there is a link to what may not be opened')
  await picture(page, 'problem-model-zh')
  await said.getByRole('button', { name: '重新提问' }).click()
  await until(async () => (await page.getByText('refuse the key').count()) > 1, 'asked again')
})

await check('the icon of the tab is found from every address', {}, async (page) => {
  await ask(page, 'hello')
  await page.getByText('You said: hello').first().waitFor()
  await composer(page).waitFor()
  const address = await page.evaluate(() => document.querySelector('link[rel=icon]').href)
  const answer = await page.request.get(address)
  expect(answer.ok() && /svg/.test(answer.headers()['content-type']), `${address}: ${answer.status()}`)
})
