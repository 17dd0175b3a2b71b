// What is found in code: of a step, of what the model writes in a turn that asks for it, and of a file.
import { check, expect, picture } from '../kit.mjs'
import { answered, ask, audit, wrote } from '../people.mjs'

const slow = [
  'import pandas as pd',
  "df = pd.DataFrame({'a': range(50), 'b': range(50)})",
  'total = 0',
  'for _, row in df.iterrows():',
  "    total += row['a'] * row['b']",
  'print(total)',
].join('\n')

const findings = (page) => page.getByRole('region', { name: 'Code check' })

await check('the code of a step is checked, and its slow form measured', {}, async (page) => {
  await ask(page, `run: ${slow}`)
  await answered(page, 'It ran.')
  await page.locator('[data-step]').first().hover()
  await page.getByRole('button', { name: 'Actions for this step' }).first().click()
  await page.getByRole('menuitem', { name: 'Check the code' }).click()
  const found = findings(page)
  await found.getByText(/iterrows\(\)/).waitFor()
  await found.getByText('line 4:').waitFor()
  await found.getByRole('button', { name: 'Measure the slow code' }).click()
  await found.getByText(/× as fast/).waitFor()
  await audit(page, 'a check of a step')
  await picture(page, 'check-step')
  await found.getByRole('button', { name: 'Close' }).click()
  await found.waitFor({ state: 'detached' })
})

await check('a person who asks for it sees what is found in the model’s code', {}, async (page) => {
  await page.evaluate(() => localStorage.setItem('cove.preferences', JSON.stringify({ checks: true })))
  await page.reload()
  await ask(page, `run: ${slow}`)
  await answered(page, 'It ran.')
  await wrote(page, /iterrows\(\) makes/)
  await findings(page).getByText('line 4:').waitFor()
  await picture(page, 'check-turn')
  // It is part of what is kept.
  await page.reload()
  await wrote(page, /iterrows\(\) makes/)
})

await check('a file is checked, and what a check misses is said', {}, async (page) => {
  await ask(page, `run: open('report.py', 'w').write(${JSON.stringify(slow)})`)
  await answered(page, 'It ran.')
  await page
    .locator('main')
    .last()
    .getByRole('button', { name: /^report\.py/ })
    .first()
    .click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('button', { name: 'Check the code' }).click()
  await findings(dialog).getByText('line 4:').waitFor()
  await findings(dialog).getByRole('button', { name: 'Run it and show where the time goes' }).click()
  // The index of these checks has no profiler: the page says so, and what was found stays. TestChecksOfAServer profiles.
  await findings(dialog)
    .getByText(/scalene could not be installed/)
    .waitFor()
  expect(await findings(dialog).getByText('line 4:').count(), 'what was found is gone')
  await audit(page, 'a check of a file')
  await picture(page, 'check-file')
  await page.keyboard.press('Escape')
})
