// What models are asked to do in all conversations of a project.
import { check, expect, until } from '../kit.mjs'
import { answered, ask, asViewer } from '../people.mjs'

const field = (page) => page.getByRole('textbox', { name: 'Project instructions' })

await check('instructions of the project: set, followed, shown, removed', {}, async (page, context) => {
  await page.goto('settings')
  await field(page).fill('Amounts are in <b>euros</b>.\nAnswer in French.')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('Instructions saved').waitFor()
  await page.goto('./')
  await page.getByText('The instructions of this project apply.').waitFor()
  await ask(page, 'which instructions do you have?')
  await answered(page, 'Answer in French.')
  await asViewer(context, async (other) => {
    await other.goto('settings')
    await other.getByText('Amounts are in <b>euros</b>.').waitFor()
    expect((await field(other).count()) === 0, 'a viewer has a field')
  })
  await page.goto('./')
  await page.getByRole('link', { name: 'Show', exact: true }).click()
  await until(async () => (await field(page).inputValue()).includes('French'), 'the text after a visit')
  await field(page).fill('x'.repeat(8001))
  await page.getByText('8001 characters; at most 8000 are possible.').waitFor()
  expect(await page.getByRole('button', { name: 'Save', exact: true }).isDisabled(), 'too long a text can be saved')
  await field(page).fill('')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('Instructions removed').waitFor()
  await page.goto('./')
  await page
    .getByText('Try it')
    .or(page.getByRole('heading', { level: 1 }))
    .first()
    .waitFor()
  expect((await page.getByText('The instructions of this project apply.').count()) === 0, 'they still apply')
})
