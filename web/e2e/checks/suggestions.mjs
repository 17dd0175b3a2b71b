// Questions that the page offers by the columns of files and tables.
import { check, expect, picture, until } from '../kit.mjs'
import { answered, ask, asViewer, audit, composer } from '../people.mjs'

const offered = (page) => page.getByRole('group', { name: 'Suggested questions' })
const texts = (page) => offered(page).getByRole('button').allInnerTexts()

const drop = (page, name, text) =>
  page
    .locator('input[type=file]')
    .first()
    .setInputFiles({ name, mimeType: 'text/csv', buffer: Buffer.from(text) })

const sales = ['date,region,units,revenue']
for (let i = 0; i < 1500; i++)
  sales.push(`2024-0${1 + (i % 9)}-01,${i % 2 ? 'North' : 'South'},${(i * 7) % 31},${(i * 13) % 97}.5`)

await check('questions that fit the columns of a file are offered, and written at a click', {}, async (page) => {
  await page.getByText('Or try an example sales file').waitFor()
  await drop(page, 'own.csv', sales.join('\n'))
  await page.getByText('1,500 rows').waitFor()
  expect(!(await page.getByText('Or try an example sales file').count()), 'the example is offered beside a file')
  const change = offered(page).getByRole('button', { name: 'How did revenue change over time?' })
  await change.waitFor()
  await offered(page).getByRole('button', { name: 'Which region has the highest revenue?' }).waitFor()
  await offered(page).getByRole('button', { name: 'How do revenue and units go together?' }).waitFor()
  await picture(page, 'suggestions-file')
  await audit(page, 'suggested questions')
  // By the keyboard alone: they come before the field.
  await composer(page).focus()
  for (let n = 0; n < 9 && !(await change.evaluate((e) => e === document.activeElement)); n++)
    await page.keyboard.press('Shift+Tab')
  await page.keyboard.press('Enter')
  expect((await composer(page).inputValue()) === 'How did revenue change over time?', 'the question is not written')
  expect(await composer(page).evaluate((e) => e === document.activeElement), 'the field has no focus')
  expect(!page.url().includes('/c/'), 'the question was sent')
  expect(!(await offered(page).count()), 'they are there while something is written')
  await composer(page).fill('')
  await offered(page).waitFor()
  await page.getByRole('button', { name: 'Hide suggested questions' }).click()
  await until(async () => !(await offered(page).count()), 'they are hidden')
  await page.reload()
  await page.getByText('1,500 rows').waitFor()
  expect(!(await offered(page).count()), 'they are there again after a reload')
})

await check('names of columns in offered questions are plain text of a bounded length', {}, async (page) => {
  const long = 'x'.repeat(5000)
  await drop(page, 'bad.csv', `<img src=x onerror=alert(1)>,${long},score\u202e\na,b,1\nc,d,5\na,,2\n`)
  await offered(page).waitFor()
  const all = await texts(page)
  expect(all.includes('Which “<img src=x onerror=alert(1)>” has the highest score?'), all.join('\n'))
  expect(!all.some((t) => t.includes('xxxx') || t.includes('\u202e')), all.join('\n'))
  expect(!(await offered(page).locator('img').count()), 'a name became markup')
})

const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }

await check('after an answer questions about its tables are offered, on a phone too', { ...phone }, async (page) => {
  await ask(
    page,
    "run: import pandas as pd\nby_region = pd.DataFrame({'month': pd.to_datetime(['2024-01-01', '2024-02-01', '2024-03-01']), 'shop': ['A', 'B', 'A'], 'profit': [1.5, None, 9]})",
  )
  await answered(page, 'It ran.')
  await offered(page).getByRole('button', { name: 'How did profit change over time?' }).waitFor()
  await offered(page).getByRole('button', { name: 'Which columns have missing values?' }).waitFor()
  await picture(page, 'suggestions-phone')
  await audit(page, 'suggested questions on a phone')
  const heights = await offered(page)
    .getByRole('button')
    .evaluateAll((all) => all.map((e) => e.getBoundingClientRect().height))
  expect(
    heights.every((h) => h >= 43),
    `small targets: ${heights}`,
  )
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
  expect(wide <= 0, `the page scrolls sideways by ${wide} px`)
  await composer(page).fill('x')
  expect(!(await offered(page).count()), 'they are there while something is written')
})

await check('after an answer that left no table in Python the file is looked at', {}, async (page, context) => {
  await ask(page, "run: open('made.csv', 'w').write('city,people\\nRome,5\\nOslo,7\\nRome,6\\n')")
  await answered(page, 'It ran.')
  await offered(page).getByRole('button', { name: 'Which city has the highest people?' }).waitFor()
  const { pathname } = new URL(page.url())
  await asViewer(context, async (viewer) => {
    await viewer.goto(pathname.replace(/^.*\/c\//, 'c/'))
    await answered(viewer, 'It ran.')
    await viewer.getByText('made.csv').first().waitFor()
    expect(!(await offered(viewer).count()), 'a viewer, who may not ask, is offered questions')
  })
})
