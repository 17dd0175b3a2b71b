// Files that are looked at.
import { check, picture } from '../kit.mjs'
import { answered, ask } from '../people.mjs'

const code = [
  "open('numbers.csv', 'w').write('city,people\\nRome,3\\nZagreb,1\\n')",
  "open('read.md', 'w').write('# A title\\n\\n![x](http://outside.invalid/x.png)\\n')",
  "open('a\\u202egpj.txt', 'w').write('hello there')",
].join('\n')

/** A file under the answer. */
const chip = (page, name) => page.locator('main').last().getByRole('button', { name }).first()

await check('previews: files of a workspace are looked at, and nothing from elsewhere is loaded', {}, async (page) => {
  await ask(page, `run: ${code}`)
  await answered(page, 'It ran.')
  await chip(page, /^numbers\.csv/).click()
  await page.getByRole('dialog').getByText('Zagreb').waitFor()
  await picture(page, 'preview-table')
  await page.keyboard.press('Escape')
  await chip(page, /^read\.md/).click()
  await page.getByRole('dialog').getByRole('heading', { name: 'A title' }).waitFor()
  await page.keyboard.press('Escape')
  await chip(page, /^agpj\.txt/).click()
  await page.getByRole('dialog').getByText('hello there').waitFor()
  await page.getByRole('button', { name: 'Ask about it' }).click()
  await page.waitForFunction(() => document.activeElement?.value?.includes('agpj.txt'))
})
