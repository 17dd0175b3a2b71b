// Pictures of the main path, for docs/: a file is dropped, a question asked, the chart and the answer come, and the same steps are a notebook.
// It needs a server with the scripted model; `make page-pictures` starts both.
import { check, end, env, until } from './kit.mjs'
import { ask } from './people.mjs'

const size = { viewport: { width: 1120, height: 760 }, deviceScaleFactor: 1 }
const take = (page, name) => page.screenshot({ path: `${env('COVE_PICTURES')}/${name}.png`, animations: 'disabled' })

await check('the main path', size, async (page) => {
  await page.locator('input[type=file]').first().setInputFiles(env('COVE_SALES'))
  await page.getByText('sales.csv').first().waitFor()
  await until(async () => !/\d %/.test(await page.locator('main').innerText()), 'the upload')
  await take(page, 'page-1-file')
  await ask(page, 'Which region grew fastest? Plot it.')
  await page.getByText('Revenue by region and year').first().waitFor()
  await take(page, 'page-2-steps')
  await page.getByText('Overseas grew fastest').last().waitFor()
  await page.locator('main figure img').first().waitFor()
  await page.setViewportSize({ width: 1120, height: 1010 })
  await page.mouse.move(0, 0)
  await take(page, 'page')
  await page.getByText('Notebook', { exact: true }).last().click()
  await page.locator('.cm-editor').first().waitFor()
  await take(page, 'page-4-notebook')
})
await end()
