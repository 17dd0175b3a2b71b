// Charts: what is drawn of them, how they are looked at, and what is saved.
import { readFileSync } from 'node:fs'
import { check, expect, picture, until } from '../kit.mjs'
import { answered, ask, wrote } from '../people.mjs'

/** The frame in which something is drawn that the selector finds. */
const frameWith = (page, selector) =>
  until(async () => {
    for (const f of page.frames().filter((f) => f.url().includes('/frame')))
      if (
        await f
          .locator(selector)
          .count()
          .catch(() => 0)
      )
        return f
    return null
  }, `a frame with ${selector}`)

/** Saves a chart in a form, by the menu under it. */
async function saved(page, form) {
  await page.getByRole('button', { name: 'Chart options' }).first().click()
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('menuitem', { name: form }).click(),
  ])
  return { name: download.suggestedFilename(), bytes: readFileSync(await download.path()) }
}

/** The width and height of a PNG, as it says itself. */
const sizeOf = (png) => {
  expect(png.subarray(1, 4).toString() === 'PNG', `no PNG: ${png.subarray(0, 40)}`)
  return [png.readUInt32BE(16), png.readUInt32BE(20)]
}

const forms = [
  ['PNG', 'chart-1.png'],
  ['SVG', 'chart-1.svg'],
  ['CSV', 'chart-1.csv'],
]

async function savedInAllForms(page, rows) {
  for (const [form, file] of forms) {
    const { name, bytes } = await saved(page, new RegExp(form))
    expect(name === file, `it is saved as ${name}`)
    if (form === 'PNG') expect(Math.min(...sizeOf(bytes)) > 200, `the picture is of ${sizeOf(bytes)}`)
    if (form === 'SVG') expect(/^<svg[\s\S]*<\/svg>\s*$/.test(bytes.toString()), bytes.toString().slice(0, 200))
    if (form === 'CSV') {
      const said = bytes.toString().trim().split(/\r?\n/)
      expect(said.length === rows.length && said.every((line, i) => rows[i].test(line)), `the data is ${said}`)
    }
  }
}

await check('a Plotly figure is zoomed, and saved as PNG, SVG and CSV', {}, async (page) => {
  await ask(
    page,
    "run: import plotly.express as px\npx.scatter(x=[1, 2, 3, 4], y=[10, 20.5, 15, 30], labels={'x': 'day', 'y': 'sold'})",
  )
  await answered(page, 'It ran.')
  const frame = await frameWith(page, '.main-svg .nsewdrag')
  /** How much of the axis the chart shows, by its labels. */
  const span = async () => {
    const all = (await frame.locator('.xtick text').allTextContents()).map(Number)
    return Math.max(...all) - Math.min(...all)
  }
  expect((await span()) >= 2, `the axis shows ${await span()}`)
  // A rectangle of the plot is drawn with the mouse: the axis shows less than before. The house shows all again.
  const plot = frame.locator('.nsewdrag').first()
  await plot.scrollIntoViewIfNeeded()
  const { x, y, width, height } = await plot.boundingBox()
  await page.mouse.move(x + width * 0.3, y + height * 0.2)
  await page.mouse.down()
  await page.mouse.move(x + width * 0.5, y + height * 0.6, { steps: 8 })
  await page.mouse.up()
  await until(async () => (await span()) < 1, 'the axis shows another part')
  await picture(page, 'plotly-zoomed')
  await frame.locator('[data-title="Reset axes"]').click()
  await until(async () => (await span()) >= 2, 'the axis shows all again')
  await savedInAllForms(page, [/^x,y$/, /^1,10$/, /^2,20\.5$/, /^3,15$/, /^4,30$/])
  // The whole window.
  await page.getByRole('button', { name: 'Full screen' }).first().click()
  const dialog = page.getByRole('dialog')
  await dialog.locator('iframe').waitFor()
  await until(async () => (await dialog.locator('iframe').boundingBox()).height > 500, 'the chart fills the window')
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
})

const both = `run: import matplotlib.pyplot as plt, plotly.express as px
plt.plot([1, 3, 2])
plt.show()
px.bar(x=['Rome', 'Zagreb', 'Oslo'], y=[3, 1, 2])`

await check('images and charts are one album in full screen', {}, async (page) => {
  await ask(page, both)
  await answered(page, 'It ran.')
  const opens = page.getByRole('button', { name: 'Full screen', exact: true })
  await frameWith(page, '.main-svg .bars path')
  const dialog = page.getByRole('dialog')
  const image = dialog.locator('img')
  /** The chart of the full screen, when its bars are drawn. */
  const chart = async () => {
    const within = dialog.frameLocator('iframe')
    await within.locator('.bars path').nth(2).waitFor()
    expect((await dialog.locator('iframe').boundingBox()).height > 500, 'the chart does not fill the window')
    expect(!(await image.count()), 'the image is there beside the chart')
  }
  const tools = (name) => dialog.getByRole('button', { name, exact: true }).count()
  await opens.first().focus()
  await page.keyboard.press('Enter')
  await image.waitFor()
  await dialog.getByText('1 of 2', { exact: true }).waitFor()
  expect((await tools('Larger')) && !(await tools('Chart options')), 'an image has the tools of an image')
  // The button that has the focus is not there for a chart: the keys work all the same.
  await dialog.getByRole('button', { name: 'Smaller' }).click()
  await page.keyboard.press('ArrowRight')
  await chart()
  await dialog.getByText('2 of 2', { exact: true }).waitFor()
  expect(!(await tools('Larger')) && (await tools('Chart options')), 'a chart has the tools of a chart')
  await picture(page, 'album-chart')
  await dialog.getByRole('button', { name: 'Chart options' }).click()
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('menuitem', { name: /CSV/ }).click(),
  ])
  expect(/^x,y\r?\nRome,3\r?\n/.test(readFileSync(await download.path(), 'utf8')), 'the data of the chart')
  await page.keyboard.press('ArrowLeft')
  await image.waitFor()
  expect(!(await dialog.locator('iframe').count()), 'the chart is there beside the image')
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  const focused = (button) => until(() => button.evaluate((b) => b === document.activeElement), 'the focus is back')
  await focused(opens.first())
  // From the chart on, with the buttons; its own keys are not those of the album, but for Esc.
  await opens.nth(1).click()
  await chart()
  await dialog.getByRole('button', { name: 'Previous figure' }).click()
  await image.waitFor()
  await dialog.getByRole('button', { name: 'Next figure' }).click()
  await chart()
  await dialog.locator('iframe').focus()
  await page.keyboard.press('ArrowLeft')
  await chart()
  // Not waited for: the key takes away the frame that got it, which then may not tell Chromium that it had it.
  void page.keyboard.press('Escape').catch(() => undefined)
  await dialog.waitFor({ state: 'detached' })
  await focused(opens.nth(1))
  expect((await page.locator('iframe').count()) === 1, 'the frame of the full screen is gone')
})

await check('an Altair chart is drawn without eval in any policy', {}, async (page) => {
  const policies = []
  page.on('response', (r) => {
    const policy = r.headers()['content-security-policy']
    if (policy) policies.push([new URL(r.url()).pathname, policy])
  })
  await page.reload()
  const code = `run: import altair as alt, pandas as pd
data = pd.DataFrame({'city': ['Rome', 'Zagreb', 'Oslo'], 'people': [3, 1, 2]})
alt.Chart(data).mark_bar().encode(x='city', y='people', tooltip=['city', 'people']).transform_calculate(twice='datum.people * 2')`
  await ask(page, code)
  await answered(page, 'It ran.')
  const frame = await frameWith(page, 'svg .mark-rect path')
  expect((await frame.locator('svg .mark-rect path').count()) >= 3, 'the bars are not there')
  const text = (await frame.locator('svg').first().textContent()) ?? ''
  for (const word of ['Zagreb', 'people']) expect(text.includes(word), `${word} is not in ${text}`)
  await picture(page, 'altair')
  await savedInAllForms(page, [/city.*people/, /3/, /1/, /2/])
  expect(
    policies.some(([path]) => path.endsWith('/frame')) && policies.some(([path]) => !path.endsWith('/frame')),
    `policies were seen of ${policies.map(([path]) => path)}`,
  )
  for (const [path, policy] of policies)
    expect(!/unsafe-eval|allow-same-origin/.test(policy), `${path} has the policy ${policy}`)
  for (const sandbox of await page.locator('iframe').evaluateAll((all) => all.map((f) => f.getAttribute('sandbox'))))
    expect(sandbox !== null && !sandbox.includes('allow-same-origin'), `a frame may ${sandbox}`)
  await page.getByRole('button', { name: 'Full screen' }).first().click()
  const whole = page.getByRole('dialog').frameLocator('iframe').locator('svg.marks')
  await until(async () => (await whole.boundingBox()).width > 1000, 'the chart fills the window')
  await page.keyboard.press('Escape')
})

const labels = `run: import warnings, matplotlib.pyplot as plt, io, hashlib
from matplotlib.font_manager import fontManager
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter('always')
    def drawn(label):
        fig = plt.figure(figsize=(3, 1))
        fig.text(0.1, 0.4, label, fontsize=24)
        out = io.BytesIO()
        fig.savefig(out, format='png', metadata={'Software': None})
        plt.close(fig)
        return hashlib.sha256(out.getvalue()).hexdigest()
    print('pictures', len({drawn('收入'), drawn('地区'), drawn('增长'), drawn('□□')}))
    ax = plt.figure().gca()
    ax.bar(['华东', '华南', '海外'], [3, 5, 8])
    ax.set_xlabel('地区')
    ax.set_ylabel('收入（万元）')
    ax.set_title('各地区收入 −1')
    plt.show()
print('told', [str(w.message) for w in told])`

await check('Chinese labels of a chart are glyphs', {}, async (page) => {
  await ask(page, labels)
  await answered(page, 'It ran.')
  await page.locator('main img').first().waitFor()
  await picture(page, 'chinese-labels')
  await wrote(page, 'pictures 4')
  await page.getByText('told []', { exact: true }).waitFor()
})
