// What a person says of an answer.
import { check, expect, until } from '../kit.mjs'
import { answered, ask } from '../people.mjs'

await check('an answer is rated, with a reason', {}, async (page) => {
  await ask(page, "run: print('rated')")
  await answered(page, 'It ran.')
  const bad = page.getByRole('button', { name: 'Bad answer' })
  await bad.click()
  await page.getByRole('textbox', { name: 'Reason' }).fill('It left out May.')
  await page.getByRole('button', { name: 'Send', exact: true }).last().click()
  const rated = () => page.request.get('api/v1/ratings').then(async (r) => (await r.json()).items)
  await until(
    async () => (await rated()).some((r) => !r.rating.good && r.rating.reason === 'It left out May.'),
    'the rating',
  )
  await page.reload()
  await answered(page, 'It ran.')
  await until(async () => (await bad.getAttribute('aria-pressed')) === 'true', 'the thumb')
  await page.getByRole('button', { name: 'Good answer' }).click()
  await until(async () => (await rated()).some((r) => r.rating.good), 'the other rating')
  await page.getByRole('button', { name: 'Good answer' }).click()
  await until(async () => !(await rated()).some((r) => r.prompt.includes("'rated'")), 'the rating to be taken back')
  expect((await bad.getAttribute('aria-pressed')) === 'false', 'a thumb is down')
})
