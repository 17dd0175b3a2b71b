// What code and models say is shown, and cannot hurt.
import { check, expect, picture, until } from '../kit.mjs'
import { answered, ask } from '../people.mjs'

await check('what a model says is text', {}, async (page) => {
  await ask(page, 'hostile')
  await answered(page, 'a link')
  expect(!(await page.evaluate(() => window.hurt)), 'a script of the answer ran')
  expect(!(await page.locator('main img[src*="outside"]').count()), 'an image from outside is in the page')
  expect(!(await page.locator('main a[href^="javascript"]').count()), 'a link runs a script')
})

await check('scripts of outputs run when asked for, and reach nothing', { refused: true }, async (page) => {
  await ask(
    page,
    'run: from IPython.display import HTML, display\ndisplay(HTML(\'<p id=p>still</p><script>document.getElementById("p").textContent = "origin " + origin; fetch("/api/v1/me").then(() => { document.getElementById("p").textContent += " reached" }, () => { document.getElementById("p").textContent += " refused" })</script>\'))',
  )
  const run = page.getByRole('button', { name: 'Run', exact: true })
  await run.first().waitFor()
  expect(!page.frames().some((f) => f.url().includes('/frame')), 'a frame is there before it was asked for')
  await run.first().click()
  const said = await until(async () => {
    for (const f of page.frames().filter((f) => f.url().includes('/frame'))) {
      const text = await f
        .locator('body')
        .innerText()
        .catch(() => '')
      if (/refused|reached/.test(text)) return text
    }
    return ''
  }, 'the script has run')
  expect(said.includes('origin null refused'), said)
  // It goes on when the step folds and unfolds.
  await answered(page, 'It ran.')
  await page.locator('[data-step]').first().press('Enter')
  await until(async () => page.frames().some((f) => f.url().includes('/frame')), 'the script runs on')
})

await check('charts are drawn in their frame', {}, async (page) => {
  await ask(page, "run: import plotly.express as px\npx.bar(x=['a', 'b'], y=[1, 2])")
  await answered(page, 'It ran.')
  await until(async () => {
    for (const f of page.frames().filter((f) => f.url().includes('/frame')))
      if (
        await f
          .locator('.main-svg')
          .count()
          .catch(() => 0)
      )
        return true
    return false
  }, 'Plotly has drawn')
  await picture(page, 'plotly')
})
