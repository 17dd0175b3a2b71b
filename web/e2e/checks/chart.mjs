// Charts that people make of tables, by choosing columns.
import { check, expect, picture, until } from '../kit.mjs'
import { answered, ask, asViewer, audit, cell, ended, unfold } from '../people.mjs'

const sales = `import random
random.seed(1)
rows = ['day,region,amount,cost']
for i in range(240):
    rows.append(f"2025-{i % 12 + 1:02d}-{i % 28 + 1:02d},{['North','South','East'][i % 3]},{random.randint(10, 500)},{random.randint(1, 50)}")
open('sales.csv', 'w').write('\\n'.join(rows))
print('ready')`

const panel = (page) => page.getByRole('form', { name: 'Chart settings' })
const field = (page, name) => panel(page).getByLabel(name, { exact: true })
const own = (page) => page.locator('[data-own-chart]')
/** A figure of a chart, drawn whole. */
const figure = (page, n = 0) => own(page).nth(n).locator('img[data-drawn]')
const version = (page) =>
  own(page)
    .first()
    .getByRole('img', { name: /^Version/ })

async function draw(page, button = 'Draw chart') {
  await panel(page).getByRole('button', { name: button }).click()
  await panel(page).waitFor({ state: 'detached' })
}

/** A conversation with a file of sales, and the preview of that. */
async function openSales(page) {
  await ask(page, `run: ${sales}`)
  await answered(page, 'It ran.')
  await ended(page)
  await page
    .locator('main')
    .last()
    .getByRole('button', { name: /^sales\.csv/ })
    .first()
    .click()
  await page.getByRole('dialog').getByRole('button', { name: 'Chart…' }).click()
  await panel(page).waitFor()
}

await check(
  'a chart is made of a CSV, and its kind, title and color are changed in place',
  {},
  async (page, context) => {
    await openSales(page)
    // Dates and numbers begin as a line.
    expect((await field(page, 'Kind').inputValue()) === 'line', 'a first guess')
    await field(page, 'Kind').selectOption('bar')
    await field(page, 'X axis').selectOption({ label: 'region' })
    await field(page, 'Title').fill('Sales "by" region $1 $2')
    await picture(page, 'chart-panel')
    await audit(page, 'the settings of a chart')
    await draw(page)
    await figure(page).waitFor()
    await until(
      () =>
        own(page)
          .first()
          .evaluate((e) => e.contains(document.activeElement)),
      'the focus on the new step',
    )
    await picture(page, 'chart-drawn')
    await own(page).getByRole('button', { name: 'Code', exact: true }).click()
    await own(page)
      .getByRole('button', { name: /^show all/ })
      .click()
    for (const said of ['pd.read_csv("sales.csv")', 'table["region"]', 'plt.show()'])
      await until(async () => (await own(page).innerText()).includes(said), said)

    await page.reload()
    await figure(page).waitFor()
    await own(page).getByRole('button', { name: 'Edit chart' }).click()
    await panel(page).waitFor()
    expect((await field(page, 'Title').inputValue()) === 'Sales "by" region $1 $2', 'the title is kept')
    await page.keyboard.press('Escape')
    await panel(page).waitFor({ state: 'detached' })
    await until(
      () =>
        own(page)
          .getByRole('button', { name: 'Edit chart' })
          .evaluate((e) => e === document.activeElement),
      'the focus is back',
    )
    await page.keyboard.press('Enter')
    await panel(page).waitFor()
    await field(page, 'Kind').selectOption('line')
    await field(page, 'X axis').selectOption({ label: 'day' })
    await field(page, 'Color by').selectOption({ label: 'region' })
    await field(page, 'Title').fill('Over the year')
    await field(page, 'North').fill('#ff0000')
    await picture(page, 'chart-edit')
    await draw(page, 'Update chart')
    await until(async () => (await version(page).getAttribute('aria-label')) === 'Version 2 of 2', 'a second version')
    await until(async () => (await own(page).locator('img').count()) === 1, 'one figure')
    await figure(page).waitFor()
    await own(page).getByText('Your chart: Over the year').waitFor()
    await picture(page, 'chart-second')
    await own(page).getByRole('button', { name: 'Older version' }).click()
    await own(page).getByText('Your chart: Sales "by" region').waitFor()
    await own(page).getByRole('button', { name: 'Newer version' }).click()

    // The notebook has it, and the model is told.
    const conversation = page.url().match(/cnv_[0-9a-z]+/)[0]
    const saved = await (await page.request.get(`api/v1/conversations/${conversation}/export?format=ipynb`)).json()
    const code = saved.cells.map((c) => [c.source].flat().join('')).filter((c) => c.includes('Over the year'))
    expect(code.length === 1, `the exported notebook has the chart once: ${code.length}`)
    await ask(page, 'run: print("after the chart")')
    await until(async () => (await page.locator('[data-turn]').count()) === 2, 'the second question')
    await page.locator('[data-turn]').nth(1).locator('details summary').first().click()
    await page.locator('[data-turn]').nth(1).getByText('The user drew this chart').first().waitFor()
    await ended(page)

    await asViewer(context, async (other) => {
      await other.goto(`c/${conversation}`)
      await figure(other).waitFor()
      expect(!(await other.getByRole('button', { name: 'Edit chart' }).count()), 'no settings for a viewer')
      await other
        .getByRole('button', { name: /^sales\.csv/ })
        .first()
        .click()
      await other.getByRole('dialog').getByText('region').first().waitFor()
      expect(!(await other.getByRole('button', { name: 'Chart…' }).count()), 'no charts for a viewer')
    })
  },
)

await check('a chart whose code was changed by hand says that its settings do not match', {}, async (page) => {
  await openSales(page)
  await draw(page)
  await figure(page).waitFor()
  await own(page).getByRole('button', { name: 'Actions for this step' }).click()
  await page.getByRole('menuitem', { name: 'Edit and run' }).click()
  await own(page).locator('.cm-content').click()
  await page.keyboard.press('Control+End')
  await page.keyboard.insertText('\nprint("by hand")')
  await own(page).getByRole('button', { name: 'Run', exact: true }).click()
  await own(page).getByText('by hand', { exact: true }).waitFor()
  await own(page).getByRole('button', { name: 'Edit chart' }).click()
  await own(page).getByText('was changed by hand').waitFor()
  await own(page).getByRole('button', { name: 'Start over with these settings' }).click()
  await field(page, 'Kind').selectOption('area')
  await draw(page, 'Update chart')
  await until(async () => (await version(page).getAttribute('aria-label')) === 'Version 3 of 3', 'a third version')
  await figure(page).waitFor()
  await own(page).getByRole('button', { name: 'Actions for this step' }).click()
  await page.getByRole('menuitem', { name: 'Remove chart' }).click()
  await own(page).getByText('You removed a chart.').waitFor()
  await own(page).getByRole('button', { name: 'Bring it back' }).click()
  await figure(page).waitFor()
})

const names = `import pandas as pd
hostile = pd.DataFrame({'"]); import os #': ['销售', "b'c", None, '销售'], 'a\\nb': [1, 2, 3, 4], '$\\\\frac{$': [1.5, None, 2, 4], 0: [1, 2, 3, 4], '_x': [4, 3, 2, 1]})
hostile.groupby('"]); import os #').sum()`

// The list of variables is asked for while Python draws, and answered 503 then: `down` lets the console say so.
await check(
  'charts are made of results without a name, and of variables with strange names',
  { server: 'COVE_ALONE', down: true },
  async (page) => {
    await cell(page, names)
    await page.getByRole('grid').first().waitFor()
    await page.getByRole('button', { name: 'Chart…' }).first().click()
    await panel(page).waitFor()
    await picture(page, 'chart-hostile')
    await draw(page)
    await page.locator('[data-cell] img[data-drawn]').first().waitFor()
    // Python has answered: its variables can be asked for.
    await until(
      async () => / s$/.test((await page.locator('[data-cell]').last().innerText()).trim()),
      'the first chart is over',
    )
    await page.getByRole('button', { name: 'Files and session' }).first().click()
    await page.getByRole('button', { name: 'Variables', exact: true }).click()
    await page.getByRole('button', { name: /^hostile/ }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Chart…' }).click()
    await panel(page).waitFor()
    await field(page, 'X axis').selectOption({ label: '"]); import os #' })
    for (const box of await panel(page).getByRole('checkbox').all()) await box.check()
    await page.keyboard.press('Escape')
    await panel(page).waitFor({ state: 'detached' })
    await until(
      () => page.evaluate(() => document.activeElement?.textContent === 'Chart…'),
      'the focus is on the button that opened the settings',
    )
    await page.keyboard.press('Enter')
    await panel(page).waitFor()
    await draw(page)
    await until(async () => (await page.locator('[data-cell] img[data-drawn]').count()) === 2, 'two charts')
    // A chart of a notebook is changed in its cell.
    await page.getByRole('button', { name: 'Files and session' }).first().click()
    const cells = await page.locator('[data-cell]').count()
    await page
      .locator('[data-cell]')
      .filter({ has: page.locator('img[data-drawn]') })
      .last()
      .getByRole('button', { name: /^Actions for cell/ })
      .click()
    await page.getByRole('menuitem', { name: 'Edit chart' }).click()
    await panel(page).waitFor()
    await field(page, 'Title').fill('In its cell')
    await draw(page, 'Update chart')
    await until(
      async () =>
        (await page.locator('[data-cell] .cm-content').allInnerTexts()).some((t) => t.includes('In its cell')),
      'the code of the cell',
    )
    expect((await page.locator('[data-cell]').count()) === cells, 'no other cell')
  },
)

await check(
  'a chart is made of a step’s result, which has no name',
  { viewport: { width: 1440, height: 900 }, colorScheme: 'dark', locale: 'zh-CN' },
  async (page) => {
    const box = page.locator('textarea').first()
    await box.fill(
      "run: import pandas as pd\npd.DataFrame({'城市': ['北京', '上海', '广州'] * 4, '月份': pd.date_range('2025-01-01', periods=12), '销售额': range(12)}).query('销售额 > 1')",
    )
    await box.press('Enter')
    await answered(page, 'It ran.')
    await ended(page)
    await unfold(page)
    await page.getByRole('button', { name: '图表…' }).first().click()
    const form = page.getByRole('form', { name: '图表设置' })
    await form.waitFor()
    await form.getByLabel('颜色依据', { exact: true }).selectOption({ label: '城市' })
    await form.getByLabel('标题', { exact: true }).fill('各城市销售额')
    await picture(page, 'chart-result-zh-panel')
    await form.getByRole('button', { name: '绘制图表' }).click()
    await figure(page).waitFor()
    await audit(page, 'a chart of one’s own, dark and Chinese')
    await picture(page, 'chart-result-zh')
    // What was undone is seen to be.
    await page.getByRole('button', { name: '撤销这一轮' }).last().click()
    await page.getByRole('dialog').getByRole('button', { name: '撤销' }).last().click()
    await page.locator('[data-own-chart][data-undone]').waitFor()
  },
)

const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }

for (const [locale, colorScheme, words] of [
  ['en-US', 'light', { make: 'Chart…', panel: 'Chart settings', draw: 'Draw chart', edit: 'Edit chart' }],
  ['zh-CN', 'dark', { make: '图表…', panel: '图表设置', draw: '绘制图表', edit: '编辑图表' }],
])
  await check(`a chart is made on a phone, ${locale}`, { ...phone, locale, colorScheme }, async (page) => {
    const box = page.locator('textarea').first()
    await box.fill(`run: ${sales}`)
    await box.press('Enter')
    await answered(page, 'It ran.')
    await ended(page)
    await page
      .locator('main')
      .last()
      .getByRole('button', { name: /^sales\.csv/ })
      .first()
      .click()
    await page.getByRole('dialog').getByRole('button', { name: words.make }).click()
    const form = page.getByRole('form', { name: words.panel })
    await form.waitFor()
    await picture(page, `chart-phone-panel-${locale}`)
    const small = await form.evaluate((f) =>
      [...f.querySelectorAll('select, button, summary, input:not([type=checkbox]), label:has(input)')]
        .filter(
          (e) =>
            e.getClientRects().length &&
            !e.closest('[class*=copy]') &&
            e.getBoundingClientRect().height < 44 &&
            !(e.matches('input') && e.closest('label')),
        )
        .map((e) => `${e.tagName} ${e.textContent.slice(0, 20)} ${e.getBoundingClientRect().height}`),
    )
    expect(!small.length, `too small: ${small.join(', ')}`)
    await form.getByRole('button', { name: words.draw }).click()
    await figure(page).waitFor()
    await own(page).getByRole('button', { name: words.edit }).click()
    await form.waitFor()
    const wide = await page.evaluate(() => document.documentElement.scrollWidth)
    expect(wide <= 390, `as wide as ${wide}`)
    await picture(page, `chart-phone-edit-${locale}`)
  })
