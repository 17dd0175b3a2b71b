// One question, answered several times at once.
import { check, expect, picture } from '../kit.mjs'
import { answered, ask } from '../people.mjs'

await check('the tries of a question are its versions', {}, async (page) => {
  await page.goto('settings')
  await page.getByText('3 times', { exact: true }).click()
  await page.goto('')
  await ask(page, "run: print('tried')")
  await page.getByText(/: [23] answered the same/).waitFor()
  await answered(page, 'It ran.')
  await page.getByRole('button', { name: 'Next version' }).click()
  await page.getByText(/^Try [123] · /).waitFor()
  expect(!(await page.getByText('answered the same').count()), 'a try tells of the choice')
  await page.getByRole('button', { name: 'Previous version' }).click()
  await page.getByText(/: [23] answered the same/).waitFor()
  await picture(page, 'tries')
  // What comes next goes on from the answer, not from a try.
  await page.reload()
  await page.getByText(/: [23] answered the same/).waitFor()
})
