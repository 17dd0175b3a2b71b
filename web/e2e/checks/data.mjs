// Tables, variables, and steps that are run again.
import { readFileSync } from 'node:fs'
import { check, expect, picture, until } from '../kit.mjs'
import { answered, ask, cell } from '../people.mjs'

const steps = (page) => page.locator('[data-step]')

const frame =
  "import pandas as pd, numpy as np\nrng = np.random.default_rng(0)\ndf = pd.DataFrame({f'c{i}': rng.normal(size=100000) for i in range(19)})\ndf['city'] = np.where(np.arange(100000) == 77777, 'Zagreb', 'Rome')\ndf"
const cells = (page) => page.locator('[role=gridcell], [role=rowheader], [role=columnheader]').count()
const inGrid = (page, text) =>
  until(async () => (await page.getByRole('grid').first().innerText()).includes(text), `${text} in the grid`)

await check(
  'a table of 100,000 × 20 is scrolled, sorted, filtered and copied',
  { server: 'COVE_ALONE', permissions: ['clipboard-read', 'clipboard-write'] },
  async (page) => {
    await cell(page, frame)
    const grid = page.getByRole('grid').first()
    await grid.waitFor()
    expect((await cells(page)) < 1500, 'too many cells are in the document')
    await until(async () => {
      await grid.evaluate((e) => {
        e.scrollTop = e.scrollHeight
      })
      return (await grid.innerText()).includes('99999')
    }, 'the last row')
    expect((await cells(page)) < 1500, 'too many cells are in the document')
    await page.getByPlaceholder('Filter rows').first().fill('zagreb')
    await inGrid(page, '77777')
    await page.getByText('1 of 100,000 rows').waitFor()
    await page.getByPlaceholder('Filter rows').first().fill('')
    await inGrid(page, '0.125730')
    await grid.getByRole('button', { name: 'c0', exact: true }).click()
    await inGrid(page, '-4.494117')
    await grid.locator('[data-row="1"][data-column="1"]').click()
    await grid.locator('[data-row="3"][data-column="3"]').click({ modifiers: ['Shift'] })
    await page.keyboard.press('Control+c')
    // Rows that are not here are asked for first.
    let copied = ''
    await until(async () => {
      copied = await page.evaluate(() => navigator.clipboard.readText())
      return copied.split('\n').length === 3 && copied.split('\n').every((l) => l.split('\t').length === 3)
    }, 'three rows of three cells in the clipboard').catch((error) => {
      throw new Error(`${error.message}, which has: ${copied.slice(0, 500)}`)
    })
    await picture(page, 'table')
  },
)

await check(
  'a table that Python does not have any more keeps its first rows',
  { server: 'COVE_ALONE' },
  async (page) => {
    await cell(page, frame)
    const grid = page.getByRole('grid').last()
    await grid.waitFor()
    await page.getByRole('button', { name: 'Restart Python' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Restart Python' }).click()
    await page.getByText('Python was restarted. Variables').waitFor()
    await grid.evaluate((e) => {
      e.scrollTop = 200000
    })
    await page.getByText('Only the rows saved with the output are shown.').last().waitFor()
  },
)

await check('a table is saved as a workbook, which Python reads', { server: 'COVE_ALONE' }, async (page) => {
  // The notebook of a server without a model has no address of its own.
  let session = ''
  page.on('request', (r) => {
    session = r.url().match(/\/sessions\/(ses_[0-9a-z]+)/)?.[1] ?? session
  })
  await cell(page, "import pandas as pd\npd.DataFrame({'n': [1.5, 2], '文字': ['=1+1', '<&>'], 'yes': [True, False]})")
  await page.getByRole('grid').first().waitFor()
  await page.getByRole('button', { name: 'Download' }).first().click()
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('menuitem', { name: 'Excel (XLSX)' }).click(),
  ])
  const put = await page.request.put(`api/v1/sessions/${session}/files/saved.xlsx`, {
    data: readFileSync(await download.path()),
    headers: { 'Content-Type': 'application/octet-stream', 'Sec-Fetch-Site': 'same-origin' },
  })
  expect(put.ok(), `${put.status()} ${await put.text()}`)
  await cell(page, "r = pd.read_excel('saved.xlsx')\nprint('read', r.iloc[:, 1:].to_dict('list'))")
  await page
    .getByText("read {'n': [1.5, 2.0], '文字': ['=1+1', '<&>'], 'yes': [True, False]}", { exact: true })
    .waitFor()
})

await check('a step is edited and run, and those after it', {}, async (page) => {
  await ask(page, 'run: value = 1\nprint("value", value)')
  await answered(page, 'It ran.')
  await ask(page, 'run: print("next", value + 1)')
  await until(async () => (await steps(page).count()) === 2 && (await page.getByText('It ran.').count()) === 2, 'both')
  const editor = page.locator('.cm-content')
  // A step can be edited when the question after it has ended, which is a moment later than its answer.
  await until(async () => {
    await steps(page).first().focus()
    await page.keyboard.press('e')
    return editor.waitFor({ timeout: 3000 }).then(
      () => true,
      () => false,
    )
  }, 'the code of the step is open')
  await editor.click()
  await page.keyboard.press('Control+a')
  await page.keyboard.insertText('value = 41\nprint("value", value)')
  await page.keyboard.press('Control+Enter')
  await page.getByText('value 41').waitFor()
  await page.getByText('Out of date (an earlier step was re-run)').waitFor()
  await steps(page).first().focus()
  await page.keyboard.press('.')
  await page.getByRole('menuitem', { name: 'Run this and everything after' }).click()
  await until(async () => {
    const last = steps(page).last()
    if ((await last.getAttribute('aria-expanded')) === 'false') await last.click()
    return page.getByText('next 42').count()
  }, 'the step after it ran with the new value')
  expect(!(await page.getByText('Out of date (an earlier step was re-run)').count()), 'a step is marked that ran since')
  await page.getByRole('button', { name: 'Files and session' }).click()
  await page.getByRole('button', { name: 'Variables', exact: true }).click()
  await page
    .getByRole('button', { name: /^value int/ })
    .getByText('41')
    .waitFor()
  await ask(page, 'run: value = pd_free = 43')
  await page
    .getByRole('button', { name: /^value int/ })
    .getByText('43')
    .waitFor()
  await picture(page, 'variables')
})
