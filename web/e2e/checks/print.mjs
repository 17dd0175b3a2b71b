// A conversation on paper, and as a PDF.
import { writeFileSync } from 'node:fs'
import { check, env, expect, picture, until } from '../kit.mjs'
import { answered, ask, audit } from '../people.mjs'

const document_ = (page) => page.getByRole('dialog', { name: 'Print' }).locator('article')

/** Opens the view by a key or the menu, and waits until all is there. */
async function openPrint(page, open) {
  await page.evaluate(() => {
    window.printed = 0
    window.print = () => {
      window.printed++
    }
  })
  await open()
  await page.locator('article[data-ready]').waitFor()
}

/** The number of pages of a PDF, and the text of the first one, as Python in the session reads it. */
async function read(page, pdf) {
  const conversation = page.url().match(/\/c\/(cnv_[0-9a-z]+)/)[1]
  const turns = await (await page.request.get(`api/v1/conversations/${conversation}/turns`)).json()
  const { session } = turns.items.find((t) => t.session)
  const put = await page.request.put(`api/v1/sessions/${session}/files/printed.pdf`, {
    data: pdf,
    headers: { 'Content-Type': 'application/octet-stream', 'Sec-Fetch-Site': 'same-origin' },
  })
  expect(put.ok(), `${put.status()} ${await put.text()}`)
  const said = await (await page.request.get(`api/v1/sessions/${session}/preview?path=printed.pdf`)).json()
  expect(said.kind === 'pdf' && said.pages > 0, JSON.stringify(said).slice(0, 500))
  if (env('COVE_PICTURES')) writeFileSync(`${env('COVE_PICTURES')}/printed-${said.pages}.pdf`, pdf)
  return { pages: said.pages, text: said.text.replace(/\s+/g, ' ') }
}

await check('a conversation is printed: question, answer, figures and tables, no controls', {}, async (page) => {
  const code = [
    'import pandas as pd, matplotlib.pyplot as plt',
    "print('text of the step')",
    "df = pd.DataFrame({'n': range(1000), 'name': [f'row {i}' for i in range(1000)]})",
    'display(df)',
    'plt.plot([1, 4, 2]); plt.show()',
    'import plotly.express as px',
    'px.line(x=[1, 2, 3], y=[3, 1, 2]).show()',
  ].join('\n')
  await ask(page, `run: ${code}`)
  await answered(page, 'It ran.')
  await ask(page, 'say [the source](https://example.com/data)')
  await page.getByText('You said:').last().waitFor()
  await page.emulateMedia({ colorScheme: 'dark' })
  await openPrint(page, async () => {
    await page.getByRole('button', { name: 'Share and export' }).click()
    await page.getByRole('menuitem', { name: 'Print or save as PDF' }).click()
  })
  const doc = document_(page)
  const withCode = page.getByRole('checkbox', { name: 'With code and text output' })
  await withCode.setChecked(false)
  await page.locator('article[data-ready]').waitFor()
  await picture(page, 'print-view')
  await audit(page, 'the view for printing')
  expect((await doc.locator('img').count()) === 2, `${await doc.locator('img').count()} pictures of 2 figures`)
  expect((await doc.locator('tbody tr').count()) === 200, `${await doc.locator('tbody tr').count()} rows`)
  await doc.getByText('and 800 more rows').waitFor()
  expect(!(await doc.getByText('text of the step', { exact: true }).count()), 'text is there without code')
  const plain = await page.pdf({ format: 'A4' })
  const short = await read(page, plain)
  expect(short.pages >= 4 && short.pages <= 16, `${short.pages} pages`)
  expect(short.text.includes('import pandas'), `the question is not on the first page: ${short.text}`)
  for (const other of ['New question', 'Print or save', 'Your question', 'With code', 'Sessions'])
    expect(!short.text.includes(other), `${other} is on paper: ${short.text}`)
  await withCode.setChecked(true)
  await page.locator('article[data-ready]').waitFor()
  await doc.getByText('text of the step', { exact: true }).waitFor()
  await page.keyboard.press('Control+p')
  expect((await page.evaluate(() => window.printed)) === 1, 'the browser was not asked to print')
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' })
  const ground = await doc.evaluate((e) => getComputedStyle(e).backgroundColor)
  expect(ground === 'rgb(255, 255, 255)', `the paper is ${ground}`)
  const written = await doc.locator('a').evaluate((e) => getComputedStyle(e, '::after').content)
  expect(
    written.includes('https://example.com/data') || written.includes('attr'),
    `the link is not written out: ${written}`,
  )
  const broken = await doc
    .locator('figure, tr')
    .evaluateAll((all) => all.filter((e) => getComputedStyle(e).breakInside !== 'avoid').length)
  expect(!broken, `${broken} figures and rows may be cut by the end of a page`)
  await picture(page, 'print-paper')
  await page.emulateMedia({ media: 'screen' })
  await page.keyboard.press('Escape')
  await until(async () => !(await doc.count()), 'the view is closed')
})

await check('Ctrl+P prints a short conversation on one page', {}, async (page) => {
  await ask(page, 'say something about penguins')
  await answered(page, 'You said: say something about penguins')
  await ask(page, "run: print('on paper')")
  await answered(page, 'It ran.')
  await openPrint(page, () => page.keyboard.press('Control+p'))
  await page.getByRole('button', { name: 'Print', exact: true }).click()
  expect((await page.evaluate(() => window.printed)) === 1, 'the browser was not asked to print')
  const { pages, text } = await read(page, await page.pdf({ format: 'A4' }))
  expect(pages === 1, `${pages} pages`)
  for (const wanted of ['say something about penguins', 'You said:', 'It ran.'])
    expect(text.includes(wanted), `${wanted} is not in: ${text}`)
})
