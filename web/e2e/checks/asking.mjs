// Questions, their answers, and what becomes of them.
import { check, env, expect, picture, until } from '../kit.mjs'
import { answered, ask, audit, goOn, unfold, waits, wrote } from '../people.mjs'

await check('a file and a question become steps, a figure and an answer', { part: 'first' }, async (page) => {
  await page.locator('input[type=file]').first().setInputFiles(env('COVE_SALES'))
  await page.getByText('sales.csv').first().waitFor()
  await ask(page, 'Which region grew fastest? Plot it.')
  await answered(page, 'Overseas grew fastest')
  await page.getByText('repaired').first().waitFor()
  const figure = page.locator('main img').first()
  await figure.waitFor()
  expect(await figure.evaluate((i) => i.naturalWidth > 100), 'the figure is not drawn')
  await page.getByText('regions.csv').first().waitFor()
  await picture(page, 'answer')
  await audit(page, 'a conversation')
  // It is all there again after a reload, and at an address of its own.
  expect(/\/c\/cnv_/.test(page.url()), page.url())
  await page.reload()
  await answered(page, 'Overseas grew fastest')
  await page.locator('[data-turn] li', { hasText: 'sales.csv' }).first().waitFor()
  await page.locator('main img').first().waitFor()
  await page.emulateMedia({ colorScheme: 'dark' })
  await picture(page, 'answer-dark')
  await audit(page, 'a conversation in the dark theme')
  await page.setViewportSize({ width: 390, height: 800 })
  await picture(page, 'answer-phone')
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
  expect(wide <= 0, `the page scrolls sideways by ${wide} px at 390 px`)
})

await check('output appears as it is printed, and a reload in the middle loses nothing', {}, async (page) => {
  const lines = Array.from({ length: 5 }, (_, i) => `print('line', ${i})\n${waits(`go-${i}`)}`)
  await ask(page, `run: ${lines.join('\n')}`)
  // Each line is there before the code goes on to the next.
  for (let i = 0; i < 3; i++) {
    await page.getByText(`line ${i}`).first().waitFor()
    expect(!(await page.getByText(`line ${i + 1}`).count()), `line ${i} came with the next`)
    await goOn(page, `go-${i}`)
  }
  await page.reload()
  await page.getByText('line 3').first().waitFor()
  await goOn(page, 'go-3')
  await goOn(page, 'go-4')
  await answered(page, 'It ran.')
  await wrote(page, 'line 4')
  const text = await until(async () => {
    await unfold(page) // the step folds a moment after it ends
    const t = await page.locator('main').innerText()
    return t.includes('line 4') && t
  }, 'the output')
  for (let i = 0; i < 5; i++)
    expect(text.split(`line ${i}`).length === 2, `line ${i} is there ${text.split(`line ${i}`).length - 1} times`)
})

/** Waits until those who do not see the page have heard something. */
const focusedName = (page) =>
  page.evaluate(() => document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.textContent ?? '')

const said = (page, text) =>
  until(async () => (await page.locator('p[role=status]').allInnerTexts()).includes(text), `it is said: ${text}`)

await check('what runs is stopped, and the next question works', {}, async (page) => {
  await ask(page, 'forever')
  await page.getByText('begun').first().waitFor()
  await page.getByRole('button', { name: 'Stop' }).first().click()
  await page.getByText('Partial output was kept').first().waitFor()
  await said(page, 'The answer was stopped.')
  await ask(page, 'hello')
  await answered(page, 'You said: hello')
  await said(page, 'The answer is complete.')
  await ask(page, 'refused by the provider')
  await said(page, 'The question was not answered.')
})

await check('a question is edited into a branch with its own state, and a turn is undone', {}, async (page) => {
  await ask(page, "run: x = 1\nopen('kept.txt', 'w').write('a')\nprint('made', x)")
  await answered(page, 'It ran.')
  await ask(page, "run: import os\nx = 2\nos.remove('kept.txt')\nprint('x is now', x)")
  await wrote(page, 'x is now 2')
  await until(async () => (await page.getByText('It ran.').count()) === 2, 'the second answer')
  await page.getByRole('button', { name: 'Edit the question' }).last().click()
  await page
    .getByRole('textbox', { name: 'Edit the question' })
    .fill("run: import os\nprint('branch has', x, os.path.exists('kept.txt'))")
  await page.getByRole('textbox', { name: 'Edit the question' }).press('Enter') // which sends, as in the composer
  await wrote(page, 'branch has 1 True')
  await page.getByRole('img', { name: 'Version 2 of 2' }).waitFor()
  await page.getByRole('button', { name: 'Previous version' }).click()
  await wrote(page, 'x is now 2')
  await page.getByRole('button', { name: 'Undo this turn' }).last().click()
  await page.getByRole('dialog').getByRole('button', { name: 'Undo', exact: true }).click()
  // The conversation says it, also after a reload.
  const line = page.locator('[data-undone-to]')
  for (const at of ['at once', 'after a reload']) {
    await line.getByText('as they were before this question').waitFor()
    expect((await page.locator('[data-turn][data-undone]').count()) === 1, `${at}: which turn was undone is not shown`)
    if (at === 'at once') {
      await said(page, 'Variables and files are as they were before this question.')
      expect((await focusedName(page)) === 'Undo this', `the focus is at ${await focusedName(page)}`)
    }
    await picture(page, `undone-${at.replaceAll(' ', '-')}`)
    await page.reload()
  }
  await audit(page, 'an undone turn')
  await ask(page, "run: import os\nprint('again', x, os.path.exists('kept.txt'))")
  await wrote(page, 'again 1 True')
  await line.waitFor()
  expect(!(await line.getByRole('button').count()), 'what was asked after it cannot be undone with it')
  // Undone, and then not.
  await until(async () => (await page.getByText('It ran.').count()) === 3, 'the third answer')
  await page.getByRole('button', { name: 'Undo this turn' }).last().click()
  await page.getByRole('dialog').getByRole('button', { name: 'Undo', exact: true }).click()
  await until(async () => (await focusedName(page)) === 'Undo this', 'the focus is at the way back')
  await page.keyboard.press('Enter')
  await until(async () => (await line.count()) === 1, 'the last turn counts again')
  await said(page, 'The next question continues with the variables and files from after the last answer.')
  await until(async () => (await focusedName(page)) === 'Undo this turn', 'the focus is where it began')
})

await check('a turn that is undone is not lost', {}, async (page) => {
  await ask(page, "run: x = 1\nprint('made', x)")
  await answered(page, 'It ran.')
  await ask(page, "run: x = 2\nprint('x is now', x)")
  await wrote(page, 'x is now 2')
  await until(async () => (await page.getByText('It ran.').count()) === 2, 'the second answer')
  await page.getByRole('button', { name: 'Undo this turn' }).first().click()
  await page.getByRole('dialog').getByRole('button', { name: 'Undo', exact: true }).click()
  const line = page.locator('[data-undone-to]')
  await line.getByText('before these 2 questions').waitFor()
  expect((await page.locator('[data-turn][data-undone]').count()) === 2, 'both turns are undone')
  await page.getByRole('button', { name: 'Undo this', exact: true }).click()
  await line.waitFor({ state: 'detached' })
  await ask(page, "run: print('still', x)")
  await wrote(page, 'still 2')
})

await check('the first question has versions like any other', {}, async (page) => {
  await ask(page, "run: x = 1\nopen('kept.txt', 'w').write('a')\nprint('made', x)")
  await answered(page, 'It ran.')
  await ask(page, "run: print('second has', x)")
  await wrote(page, 'second has 1')
  await until(async () => (await page.getByText('It ran.').count()) === 2, 'the second answer')
  const conversation = page.url().match(/cnv_[0-9a-z]+/)[0]
  // Other checks go on beside this one, with questions of their own.
  const titles = page.locator('a[href*="/c/"]', { hasText: "open('kept.txt'" })
  const before = await titles.count()
  const box = page.getByRole('textbox', { name: 'Edit the question' })
  await page.getByRole('button', { name: 'Edit the question' }).first().click()
  await box.fill("run: import os\nprint('first has', 'x' in globals(), os.path.exists('kept.txt'))")
  await box.press('Enter')
  await wrote(page, 'first has False False')
  await page.getByRole('img', { name: 'Version 2 of 2' }).waitFor()
  await answered(page, 'It ran.')
  await picture(page, 'first-version')
  expect(page.url().includes(conversation), `it is in another conversation: ${page.url()}`)
  expect((await titles.count()) === before, 'the list has another conversation')
  await ask(page, "run: print('and then', 'x' in globals())")
  await wrote(page, 'and then False')
  await page.getByRole('button', { name: 'Previous version' }).click()
  await wrote(page, 'second has 1')
  await page.getByRole('img', { name: 'Version 1 of 2' }).waitFor()
  await page.reload()
  await wrote(page, 'second has 1')
  // What is asked goes on from what is shown.
  await ask(page, "run: print('third has', x)")
  await wrote(page, 'third has 1')
  await page.getByRole('button', { name: 'Next version' }).click()
  await wrote(page, 'and then False')
})

await check('a conversation is forked in its middle, and both go on by themselves', {}, async (page) => {
  await ask(page, "run: y = 1\nopen('both.txt', 'w').write('a')\nprint('made', y)")
  await answered(page, 'It ran.')
  await ask(page, "run: import os\ny = 2\nos.remove('both.txt')\nprint('y is now', y)")
  await wrote(page, 'y is now 2')
  await until(async () => (await page.getByText('It ran.').count()) === 2, 'the second answer')
  const origin = page.url()
  await page.getByRole('button', { name: 'Fork from here' }).first().click()
  await page.getByText('This is a copy of the conversation').first().waitFor()
  await until(async () => /\/c\//.test(page.url()) && page.url().split('?')[0] !== origin.split('?')[0], 'the fork')
  await page.getByText('Forked from').waitFor()
  await ask(page, "run: import os\nprint('fork has', y, os.path.exists('both.txt'))")
  await wrote(page, 'fork has 1 True')
  await picture(page, 'forked')
  // A copied question is asked again with the state from before it, and there is no way back there.
  await page.getByRole('button', { name: 'Undo this turn' }).first().waitFor()
  await until(async () => (await page.getByRole('button', { name: 'Undo this turn' }).count()) === 1, 'one way back')
  await page.getByText('Forked from').getByRole('link').click()
  await wrote(page, 'y is now 2')
  await page.getByRole('button', { name: 'Share and export' }).click()
  await page.getByRole('menuitem', { name: 'Fork the conversation' }).click()
  await page.getByText('Forked from').waitFor()
  await ask(page, "run: import os\nprint('whole has', y, os.path.exists('both.txt'))")
  await wrote(page, 'whole has 2 False')
  await page.getByRole('button', { name: 'Edit the question' }).nth(1).click()
  await page.getByRole('textbox', { name: 'Edit the question' }).fill("run: print('again has', y)")
  await page.getByRole('button', { name: 'Ask again' }).click()
  await wrote(page, 'again has 1')
})

await check('eight tabs follow one server', { part: 'scale' }, async (page, context) => {
  await ask(page, 'count slowly')
  await until(async () => /\/c\//.test(page.url()), 'the conversation')
  const tabs = await Promise.all(
    Array.from({ length: 7 }, async () => {
      const p = await context.newPage()
      await p.goto(page.url())
      return p
    }),
  )
  for (const tab of [page, ...tabs]) await answered(tab, 'Five lines, one a second.')
})
