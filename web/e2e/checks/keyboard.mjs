// The keyboard alone: the main path from the sign-in to a file that is saved, with what has the focus to be seen at each stop.
import { readFileSync } from 'node:fs'
import { check, env, expect, picture, sleep, until } from '../kit.mjs'
import { answered, ask, audit, ended, unfold } from '../people.mjs'

/** What has the focus, and whether that is seen: it, or the box around it, has an outline or a shadow that nothing like it has which is not in focus. */
const focused = (page) =>
  page.evaluate(async () => {
    const at = document.activeElement
    if (!at || at === document.body) return null
    const drawn = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))
    await drawn()
    const outline = (e) => {
      const s = getComputedStyle(e)
      return s.outlineStyle === 'none' || parseFloat(s.outlineWidth) < 1 ? '' : `${s.outlineWidth} ${s.outlineColor}`
    }
    const box = at.getBoundingClientRect()
    const within = box.width > 0 && box.top < innerHeight && box.bottom > 0 && box.left < innerWidth && box.right > 0
    const name = (at.getAttribute('aria-label') ?? at.textContent ?? '').trim().slice(0, 60)
    const others = [...document.querySelectorAll('button, a, input, textarea, select, [tabindex]')].filter(
      (e) => e !== at && !e.contains(at) && outline(e),
    )
    let seen = outline(at) !== '' && !others.length
    if (!seen) {
      // A field may show its focus at the box around it.
      const look = () =>
        [at, at.parentElement, at.closest('form')]
          .filter(Boolean)
          .map((b) => `${outline(b)} ${getComputedStyle(b).boxShadow} ${getComputedStyle(b).borderColor}`)
          .join()
      const on = look()
      at.blur()
      await drawn()
      seen = look() !== on
      at.focus({ preventScroll: true })
    }
    return { name, tag: at.tagName.toLowerCase(), seen: seen && within, within, html: at.outerHTML.slice(0, 200) }
  })

/** Presses Tab until something has the focus; every stop on the way shows that it has it. */
async function tabTo(page, name, key = 'Tab') {
  const stops = []
  for (let i = 0; i < 80; i++) {
    await page.keyboard.press(key)
    const at = await focused(page)
    if (!at) continue // between the page and the browser's own
    stops.push(`${at.tag} ${at.name}`)
    expect(at.seen, `the focus is not seen at ${JSON.stringify(at)}`)
    if (name.test(at.name)) return at
  }
  throw new Error(`Tab never came to ${name}: ${stops.join(', ')}`)
}

await check('the keyboard alone: sign in, upload, ask, unfold, download', { signedIn: false }, async (page) => {
  await page.goto('./')
  await page.getByLabel('Key', { exact: true }).waitFor()
  expect((await focused(page))?.seen, 'the first field has no focus that is seen')
  await page.keyboard.type(env('COVE_KEY'))
  await page.keyboard.press('Enter')
  await page.getByRole('textbox', { name: 'Your question' }).waitFor()
  await until(async () => (await focused(page))?.tag === 'textarea', 'the composer has the focus')
  await tabTo(page, /^Add files/)
  let chooser = null
  page.on('filechooser', (opened) => {
    chooser = opened
  })
  // Browsers open no dialog unless a key was pressed just before; on a machine that has much to do that may be over. A person presses the key once more.
  await until(
    async () => {
      if (!chooser) await page.keyboard.press('Enter')
      for (let i = 0; i < 20 && !chooser; i++) await sleep(250)
      return chooser
    },
    `the dialog for files is open; the focus is at ${JSON.stringify(await focused(page))}`,
  )
  await chooser.setFiles(env('COVE_SALES'))
  await page.getByText('sales.csv').first().waitFor()
  await until(async () => (await focused(page))?.tag === 'textarea', 'the composer has the focus again')
  await page.keyboard.type('Which region grew fastest? Plot it.')
  await page.keyboard.press('Enter')
  await answered(page, 'Overseas grew fastest')
  await ended(page)
  await until(async () => (await focused(page)) !== null, 'something has the focus after the answer')
  await tabTo(page, /Read the file/, 'Shift+Tab')
  const step = page.locator('[data-step]', { hasText: 'Read the file' })
  expect((await step.getAttribute('aria-expanded')) === 'false', 'the step is not folded')
  await page.keyboard.press('Enter')
  await page.getByText('pd.read_csv').first().waitFor()
  await page.keyboard.press('j')
  expect((await focused(page))?.seen, 'the next step has no focus that is seen')
  await picture(page, 'keyboard-step')
  await tabTo(page, /^regions\.csv/)
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog')
  await dialog.waitFor()
  await until(async () => dialog.evaluate((d) => d.contains(document.activeElement)), 'the focus is in the dialog')
  await tabTo(page, /^(Save|Download)/)
  await picture(page, 'keyboard-preview')
  const [download] = await Promise.all([page.waitForEvent('download'), page.keyboard.press('Enter')])
  expect(download.suggestedFilename() === 'regions.csv', download.suggestedFilename())
  expect(readFileSync(await download.path(), 'utf8').includes('Overseas'), 'the file is not what was made')
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  await until(async () => /^regions\.csv/.test((await focused(page))?.name ?? ''), 'the focus is where it was')
})

/** What of the controls in sight, with the rings that they have in focus, is cut off by a box around them. */
const cutOff = (page) =>
  page.evaluate(() => {
    const out = []
    for (const e of document.querySelectorAll(
      'main button, main a, main summary, main input, main textarea, main select',
    )) {
      if (!e.checkVisibility({ visibilityProperty: true }) || e.disabled || e.closest('[role=grid]')) continue
      e.focus()
      e.scrollIntoView({ block: 'center' })
      if (document.activeElement !== e) continue
      const s = getComputedStyle(e)
      const ring = s.outlineStyle === 'none' ? 0 : parseFloat(s.outlineWidth) + parseFloat(s.outlineOffset)
      const r = e.getBoundingClientRect()
      if (!r.width) continue
      const grow = Math.max(0, ring)
      const box = { left: r.left - grow, right: r.right + grow, top: r.top - grow, bottom: r.bottom + grow }
      for (let p = e.parentElement; p && p !== document.body; p = p.parentElement) {
        const c = getComputedStyle(p)
        const paints = c.contentVisibility === 'auto' || /paint|strict|content/.test(c.contain)
        const b = p.getBoundingClientRect()
        const [left, top] = [b.left + p.clientLeft, b.top + p.clientTop]
        const cut = []
        if (paints || c.overflowX !== 'visible') cut.push(left - box.left, box.right - (left + p.clientWidth))
        // What scrolls can be brought into sight.
        if (paints || /hidden|clip/.test(c.overflowY)) cut.push(top - box.top, box.bottom - (top + p.clientHeight))
        const most = Math.max(0, ...cut)
        if (most > 0.6) {
          const name = e.getAttribute('aria-label') ?? e.textContent.trim().slice(0, 40)
          out.push(
            `${most.toFixed(1)} px of ${e.tagName.toLowerCase()} “${name}” by ${p.tagName.toLowerCase()}.${p.className}`,
          )
          break
        }
      }
    }
    return out
  })

await check('focus rings and the grounds of buttons are whole, in both themes', {}, async (page) => {
  await page.locator('input[type=file]').first().setInputFiles(env('COVE_SALES'))
  await page.getByText('sales.csv').first().waitFor()
  await ask(page, 'Which region grew fastest?')
  await answered(page, 'Overseas grew fastest')
  await ended(page)
  await unfold(page)
  for (const [colorScheme, width] of [
    ['light', 1280],
    ['dark', 1280],
    ['light', 390],
  ]) {
    await page.emulateMedia({ colorScheme })
    await page.setViewportSize({ width, height: 860 })
    await page.keyboard.press('Shift') // a keyboard is at work: what has the focus shows a ring
    const cut = await cutOff(page)
    expect(!cut.length, `${colorScheme}, ${width}: ${cut.join('; ')}`)
    const step = page.locator('[data-step]').first()
    await step.focus()
    await page.keyboard.press('ArrowDown')
    await step.scrollIntoViewIfNeeded()
    await picture(page, `ring-${colorScheme}-${width}`)
    const actions = page.getByRole('button', { name: 'Actions for this step' }).first()
    if (width > 700) await actions.hover()
    await picture(page, `hover-${colorScheme}-${width}`)
  }
})

await check('keys that do something are declared where they do it', {}, async (page) => {
  await ask(page, 'run: 1')
  await answered(page, 'It ran.')
  await ended(page)
  const declared = await page.evaluate(() =>
    Object.fromEntries(
      [...document.querySelectorAll('[aria-keyshortcuts]')].map((e) => [
        e.getAttribute('aria-keyshortcuts'),
        e.getAttribute('aria-label') ?? e.textContent.trim().slice(0, 20),
      ]),
    ),
  )
  for (const keys of [
    'Control+K',
    'Control+Shift+O',
    '/',
    '[',
    ']',
    'Alt+ArrowUp Alt+ArrowDown',
    'Enter Control+Enter',
    'j k o e r .',
  ])
    expect(declared[keys] !== undefined, `${keys} is declared nowhere: ${JSON.stringify(declared)}`)
  await audit(page, 'a conversation with declared keys')
})
