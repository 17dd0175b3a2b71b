// What is seen of steps while they are written, wait, install and run.
import { check, env, expect, order, picture, until } from '../kit.mjs'
import { answered, ask, audit, composer, ended, goOn, waits, wrote } from '../people.mjs'

await check('code is seen while the model writes it', {}, async (page) => {
  // What the page shows of the code is looked at after every change of the document.
  await page.evaluate(() => {
    window.written = []
    const look = () => {
      const code = document.querySelector('[data-step]')?.closest('section')?.querySelector('pre, code')
      const text = code?.textContent ?? ''
      if (text && text !== window.written.at(-1)) window.written.push(text)
    }
    new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true })
  })
  const lines = Array.from({ length: 12 }, (_, i) => `value_${i} = ${i} * ${i}`)
  const code = `# write slowly\n${lines.join('\n')}\nprint('sum', value_11)`
  await ask(page, `run: ${code}`)
  await answered(page, 'It ran.')
  const written = await page.evaluate(() => window.written)
  const parts = written.filter((t) => t.length < code.length && code.startsWith(t.trimEnd()))
  expect(parts.length > 1, `the code came as ${JSON.stringify(written)}`)
})

const bar = `from tqdm import tqdm
import os, time, sys
for i in tqdm(range(20), desc='reading', ncols=60):
    time.sleep(0.1)
    while i == 15 and not os.path.exists('go'): time.sleep(0.05)
for i in range(5):
    print(f'\\rplain {i * 25} %', end='', flush=True)
    time.sleep(0.1)
print()
from rich.progress import track
from rich.console import Console
for i in track(range(5), description='rich', console=Console(force_terminal=True, width=60)):
    time.sleep(0.1)
print('over')`

/** How often a text is on the page, in what steps wrote. */
const times = async (page, text) => (await page.locator('main').innerText()).split(text).length - 1

await check('a progress bar stays one line', {}, async (page) => {
  await ask(page, `run: ${bar}`)
  await page
    .getByText(/reading:.*\d+\/20/)
    .first()
    .waitFor()
  // The code names it, too: what is counted is what the bar alone has.
  for (let i = 0; i < 10; i++) {
    const text = await page.locator('main').innerText()
    const bars = text.match(/reading: +\d+%/g) ?? []
    expect(bars.length <= 1, `${bars.length} bars are there at once: ${text}`)
    await page.waitForTimeout(150)
  }
  await goOn(page)
  await answered(page, 'It ran.')
  for (const at of ['at the end', 'after a reload']) {
    await wrote(page, /reading: 100%/)
    for (const [what, text] of [
      ['tqdm', 'reading: 100%'],
      ['a carriage return', 'plain 100 %'],
    ])
      expect((await times(page, text)) === 1, `${what} ${at}: ${await page.locator('main').innerText()}`)
    const all = await page.locator('main').innerText()
    expect(!/reading: +\d?\d%/.test(all) && !/plain (0|25|50|75) %/.test(all), `older lines ${at}: ${all}`)
    expect((all.match(/rich .*%/g) ?? []).length === 1, `the bar of rich ${at}: ${all}`)
    await picture(page, `progress-${at.replaceAll(' ', '-')}`)
    await page.reload()
    await answered(page, 'It ran.')
  }
})

await check('a question waits for the one that runs, and is edited and dropped', {}, async (page) => {
  await ask(page, `run: print('begun')\n${waits()}`)
  await until(async () => /\/c\//.test(page.url()), 'the conversation')
  await page.getByText('begun', { exact: true }).first().waitFor()
  for (const text of ['the first in line', 'the second in line', 'the third in line']) {
    await composer(page).fill(text)
    await composer(page).press('Enter')
  }
  const queue = page.getByRole('list', { name: 'Up next' })
  const waiting = queue.getByRole('listitem')
  await until(async () => (await waiting.count()) === 3, 'three questions wait')
  await picture(page, 'queue')
  // They are there after a reload, too.
  await page.reload()
  await until(async () => (await waiting.count()) === 3, 'three questions wait after a reload')
  await waiting.filter({ hasText: 'the second' }).getByRole('button', { name: 'Remove from the queue' }).click()
  await waiting.filter({ hasText: 'the third' }).getByRole('button', { name: 'Edit' }).click()
  await until(async () => (await composer(page).inputValue()) === 'the third in line', 'the question in the composer')
  await composer(page).fill('the last in line')
  await composer(page).press('Enter')
  await goOn(page)
  await answered(page, 'You said: the last in line')
  const said = await page.locator('main').innerText()
  expect(said.includes('You said: the first in line'), said)
  expect(!said.includes('the second in line') && !said.includes('the third in line'), said)
  expect(said.indexOf('You said: the first') < said.indexOf('You said: the last'), `the order is ${said}`)
})

await check(
  'packages: what is installed is told with its progress, and what is refused with its reason',
  {},
  async (page) => {
    await order('hold')
    await ask(page, 'run: import cowsay\nprint(cowsay.say())')
    await page
      .getByText(/cowsay 6\.1.*MB/)
      .first()
      .waitFor()
    await page.locator('main').getByRole('progressbar').first().waitFor()
    await picture(page, 'installing')
    await order('release')
    await wrote(page, 'moo')
    await wrote(page, 'Installed cowsay 6.1')
    await ask(page, 'run: import hnswlib')
    await until(async () => (await page.getByText('It ran.').count()) === 2, 'the second answer')
    await wrote(page, 'Not installed: hnswlib')
    const refused = page.getByText('Not installed: hnswlib').first()
    await refused.waitFor()
    const said = await refused.locator('xpath=..').innerText()
    expect(/source|wheel/.test(said), `no reason: ${said}`)
    expect(said.split('\n').length > 1, `no hint: ${said}`)
    await picture(page, 'refused')
    await ask(page, "run: import quietfern\nprint('leaves', quietfern.leaves)")
    await until(async () => (await page.getByText('It ran.').count()) === 3, 'the third answer')
    await wrote(page, 'Not installed: quietfern')
    await page.getByRole('button', { name: 'Install anyway' }).last().click()
    await page.getByText('Installed. Re-run').waitFor()
    await picture(page, 'approved')
    const step = page.locator('[data-step]').last()
    await until(async () => {
      await step.press('r')
      return page
        .getByText('leaves 7', { exact: true })
        .waitFor({ timeout: 3000 })
        .then(
          () => true,
          () => false,
        )
    }, 'the step runs with it')
  },
)

await check('an attempt that failed is shown with its error and what was changed', {}, async (page) => {
  await page.locator('input[type=file]').first().setInputFiles(env('COVE_SALES'))
  await page.getByText('sales.csv').first().waitFor()
  await ask(page, 'Which region grew fastest?')
  await answered(page, 'Overseas grew fastest')
  const step = page.locator('[data-step]', { hasText: 'KeyError · repaired' })
  await step.waitFor()
  await step.click()
  const body = step.locator('xpath=ancestor::section[1]')
  await body.getByText(/Attempt 1.*KeyError/).click()
  const attempt = body.locator('details').first()
  await attempt.getByText('KeyError').last().waitFor()
  const changes = attempt.getByRole('region', { name: 'Changes' })
  await changes.waitFor()
  const lines = async (kind) => (await changes.locator(`[data-kind=${kind}]`).allInnerTexts()).join('\n')
  expect((await lines('gone')).includes("df.groupby('Region')"), `what was taken out is ${await lines('gone')}`)
  expect((await lines('new')).includes('pivot_table'), `what was put in is ${await lines('new')}`)
  await picture(page, 'repaired')
})

await check('what is said stays beside its step, and steps have names', {}, async (page) => {
  await page.locator('input[type=file]').first().setInputFiles(env('COVE_SALES'))
  await page.getByText('sales.csv').first().waitFor()
  await ask(page, 'stumble')
  await answered(page, 'Nothing could be read.')
  const main = page.locator('main')
  // The first step has no comment: it is called by what it reads.
  await main.locator('[data-step]', { hasText: 'Read sales.csv' }).waitFor()
  const step = main.locator('[data-step]', { hasText: 'NameError' })
  await step.waitFor()
  const folded = await main.innerText()
  expect(folded.includes('I will read the file first.'), folded)
  expect(!folded.includes('I will try another name.'), `what was said of an attempt is away from it: ${folded}`)
  await main.getByText('The last step failed (NameError)').waitFor()
  expect(folded.indexOf('The last step failed') < folded.indexOf('Nothing could be read.'), folded)
  await step.click()
  const body = step.locator('xpath=ancestor::section[1]')
  await body.getByText('I will try another name.').waitFor()
  await picture(page, 'stumbled')
})

await check('answers, figures and files that a changed step makes old are marked', {}, async (page, context) => {
  const figure = "from PIL import Image\nImage.new('RGB', (60, 40), (x, 0, 0))"
  await ask(page, `run: x = 40 + 2\nprint('x is', x)`)
  await answered(page, 'It ran.')
  await ask(page, `run: print('then', x)\nopen('x.txt', 'w').write(str(x))\n${figure}`)
  await until(async () => (await page.getByText('It ran.').count()) === 2, 'the second answer')
  const first = page.locator('[data-step]').first()
  await first.focus()
  await page.keyboard.press('e')
  const editor = page.getByRole('textbox', { name: 'Code of this step' })
  await editor.waitFor()
  await editor.press('Control+a')
  await page.keyboard.type("x = 48\nprint('x is', x)")
  await page.keyboard.press('Control+Enter')
  const old = page.getByText('Written before a step was changed.')
  const holds = async (where) => {
    await until(async () => (await old.count()) === 2, `${where}: both answers are marked`)
    await page.locator('[data-look=stale] img').waitFor()
    await page.getByText('made before a step was changed').waitFor()
  }
  await holds('at once')
  await picture(page, 'outdated')
  await audit(page, 'outdated answers')
  await page.reload()
  await holds('after a reload')
  // In a browser that has not seen it, too, with the code that ran.
  const other = await context.browser().newContext({
    baseURL: `${env('COVE_BASE')}/`,
    storageState: await context.storageState(),
    locale: 'en-US',
  })
  const elsewhere = await other.newPage()
  await elsewhere.goto(page.url())
  await until(
    async () => (await elsewhere.getByText('Written before a step was changed.').count()) === 2,
    'both answers are marked elsewhere',
  )
  await wrote(elsewhere, 'x is 48')
  await other.close()
  // Copies say it.
  const conversation = page.url().match(/cnv_[0-9a-z]+/)[0]
  for (const format of ['ipynb', 'markdown', 'html', 'python']) {
    const text = await (await page.request.get(`api/v1/conversations/${conversation}/export?format=${format}`)).text()
    const said = text.split('was written before a step was run again').length - 1
    expect(said === 2, `${format} says it ${said} times`)
  }
  const made = await page.request.post(`api/v1/conversations/${conversation}/shares`, {
    data: {},
    headers: { 'Sec-Fetch-Site': 'same-origin' },
  })
  const shared = await context.newPage()
  await shared.goto(`shared/${(await made.json()).code}`)
  await until(
    async () => (await shared.getByText('Written before a step was changed.').count()) === 2,
    'the shared page says it',
  )
  await shared.close()
  // A new answer knows of the change, and is another version.
  await page.getByRole('button', { name: 'Answer again from here' }).last().click()
  await answered(page, 'The steps have 48 now.')
  await page.getByRole('img', { name: 'Version 2 of 2' }).waitFor()
  expect((await old.count()) === 1, 'the first answer alone is old')
  // What the model got of the change is with the question, folded.
  const quote = page.locator('details', { hasText: 'With the steps that were changed' })
  expect(!(await quote.getByText('x = 48').isVisible()), 'the quote is unfolded')
  await quote.locator('summary').click()
  await quote.getByText('x = 48').waitFor()
  await picture(page, 'answered-anew')
  await first.focus()
  await page.keyboard.press('.')
  await page.getByRole('menuitem', { name: 'Show the original' }).click()
  await until(async () => !(await old.count()), 'nothing is old any more')
})

/** The server has noted that a step ran again. */
const isNoted = (page) => page.waitForResponse((r) => r.ok() && /\/reruns\/\d+$/.test(r.url()))

/** Edits the first step and runs it. */
async function rerun(page, code, step = page.locator('[data-step]').first()) {
  const editor = page.getByRole('textbox', { name: 'Code of this step' })
  await until(async () => {
    await step.focus()
    await page.keyboard.press('e')
    return editor.waitFor({ timeout: 3000 }).then(
      () => true,
      () => false,
    )
  }, 'the code of the step is open')
  await editor.press('Control+a')
  await page.keyboard.press('Delete') // else the browser gives what is put in the style of what it replaces, which the policy refuses
  await page.keyboard.insertText(code)
  await page.keyboard.press('Control+Enter')
}

await check(
  'a step that runs again is the same in every window, whatever their clocks say',
  {},
  async (page, context) => {
    // The clock of the first window is a year ahead.
    await page.addInitScript(() => {
      const real = Date.now
      Date.now = () => real() + 365 * 86_400_000
    })
    await page.reload()
    await ask(page, "run: x = 1\nprint('x is', x)")
    await answered(page, 'It ran.')
    await rerun(page, `x = 2\nprint('x is', x, flush=True)\n${waits()}`)
    await page.getByText('x is 2').waitFor()
    // A window that opens while it runs follows it to its end.
    const other = await context.newPage()
    await other.goto(page.url())
    const line = other.locator('[data-step]').first()
    await line.getByText('Running').waitFor()
    await wrote(other, 'x is 2')
    await goOn(page)
    await line.getByText('Re-run').waitFor()
    await page.locator('[data-step]').first().getByText('Re-run').waitFor()
    await other.getByText('Written before a step was changed.').waitFor()
    // What is asked afterwards is not old.
    await ask(page, "run: print('now', x)")
    await until(async () => (await page.getByText('It ran.').count()) === 2, 'the second answer')
    await wrote(page, 'now 2')
    const stale = page.getByText('Out of date (an earlier step was re-run)')
    expect(!(await stale.count()), 'a step is called old that ran after the change')
    await picture(page, 'rerun-clock')
    // Removed in one window, it is removed in the other.
    await line.focus()
    await other.keyboard.press('.')
    await other.getByRole('menuitem', { name: 'Show the original' }).click()
    await page.getByText('x is 1').waitFor()
    await page.getByText('Written before a step was changed.').waitFor({ state: 'detached' })
    await other.close()
  },
)

await check('a step whose new result was deleted is shown as it was', {}, async (page) => {
  await ask(page, "run: x = 1\nprint('x is', x)")
  await answered(page, 'It ran.')
  const noted = isNoted(page)
  await rerun(page, "x = 2\nprint('x is', x)")
  await page.getByText('x is 2').waitFor()
  await page.getByText('Written before a step was changed.').waitFor()
  await noted
  let asked = 0
  await page.route('**/api/v1/executions/*', (route) => {
    asked++
    return route.fulfill({
      status: 404,
      contentType: 'application/problem+json',
      body: '{"code":"execution_not_found"}',
    })
  })
  await page.reload()
  await page.getByText('Written before a step was changed.').waitFor()
  await wrote(page, 'x is 1')
  await page.getByText('The result of the re-run was deleted. This is the original.').waitFor()
  const step = page.locator('[data-step]').first()
  for (let i = 0; i < 4; i++) await step.click()
  expect(asked === 1, `it was asked for ${asked} times`)
  await picture(page, 'rerun-gone')
  await step.focus()
  await page.keyboard.press('.')
  await page.getByRole('menuitem', { name: 'Show the original' }).click()
  await page.getByText('The result of the re-run was deleted.').waitFor({ state: 'detached' })
})

await check('a new answer quotes what ran again in the session that its own was forked from', {}, async (page) => {
  const times = (text, n) => until(async () => (await page.getByText(text).count()) === n, `${text}, ${n} times`)
  const anew = () => page.getByRole('button', { name: 'Answer again from here' }).last().click()
  await ask(page, `run: x = 40 + 2\nprint('x is', x)`)
  await answered(page, 'It ran.')
  await ask(page, "run: print('second', x)")
  await times('It ran.', 2)
  const noted = isNoted(page)
  await rerun(page, "x = 48\nprint('x is', x)")
  await page.getByText('x is 48').waitFor()
  await noted
  await anew()
  await times('The steps have 48 now.', 1)
  // From here on the conversation has a fork of that session.
  await ask(page, "run: print('third', x)")
  await wrote(page, 'third 48')
  await times('It ran.', 2)
  await rerun(page, "print('fourth', x)", page.locator('[data-step]').last())
  await page.getByText('fourth 48').waitFor()
  await anew()
  await times('The steps have 48 now.', 2)
})

await check('what ran again stays when it is not noted, and may be refused to a reader', {}, async (page) => {
  const refuse = (route) =>
    route.fulfill({ status: 403, contentType: 'application/problem+json', body: '{"code":"forbidden"}' })
  await ask(page, "run: x = 1\nprint('x is', x)")
  await answered(page, 'It ran.')
  await page.route('**/api/v1/turns/*/reruns/*', refuse)
  await rerun(page, "x = 2\nprint('x is', x)")
  const line = page.locator('[data-step]').first()
  await line.getByText('Re-run').waitFor()
  await page.getByText('x is 2').waitFor()
  await page.getByText('Written before a step was changed.').waitFor()
  await page.getByText('The step ran, but that was not saved in the conversation.').waitFor()
  await picture(page, 'rerun-not-noted')
  await page.unroute('**/api/v1/turns/*/reruns/*')
  const noted = isNoted(page)
  await rerun(page, "x = 3\nprint('x is', x)")
  await page.getByText('x is 3').waitFor()
  await noted
  await page.route('**/api/v1/executions/*', refuse)
  await page.reload()
  await wrote(page, 'x is 1')
  await page.getByText('The result of the re-run cannot be read with this account. This is the original.').waitFor()
  await picture(page, 'rerun-refused')
})

await check('notices of a folded step are counted on its line', {}, async (page) => {
  await page.evaluate(() => localStorage.setItem('cove.preferences', JSON.stringify({ checks: true })))
  await page.reload()
  const loop = 'for _, row in df.iterrows():\n    total += row["a"]'
  await ask(page, `run: import pandas as pd\ndf = pd.DataFrame({"a": range(50)})\ntotal = 0\n${loop}\nprint(total)`)
  await answered(page, 'It ran.')
  await ended(page)
  const step = page.locator('[data-step]').first()
  const count = step.getByText(/^\d+ notices?$/)
  if ((await step.getAttribute('aria-expanded')) === 'true') await step.click()
  await count.waitFor()
  await picture(page, 'notices-folded')
  await step.click()
  await page.getByRole('region', { name: 'Code check' }).waitFor()
  expect(!(await count.count()), 'they are seen, and counted as well')
})
