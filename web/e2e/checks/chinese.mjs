// The page in Chinese: its words, its punctuation, and what an input method does.
import { check, expect, picture, until } from '../kit.mjs'
import { ask, composer } from '../people.mjs'
import { tour } from '../tour.mjs'

/** English sentences that the page says: not code, not what somebody wrote, not names. */
const english = (page) =>
  page.evaluate(() => {
    const asked = /import \w+/ // what the tour asked
    const quoted = /“[^”]*”/g // names of things
    const others =
      'code, pre, bdi, textarea, h1, [data-turn] h2 + p, .cm-content, [role=grid], [data-name], nav a, aside a, script, style'
    const found = []
    const look = (text, at) => {
      if (/\b[a-z]{2,} [a-z]{2,} [a-z]{2,}/i.test(text.replace(quoted, '')) && !asked.test(text) && !at.closest(others))
        found.push(text.trim().slice(0, 120))
    }
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    for (let node = walker.nextNode(); node; node = walker.nextNode())
      if (node.parentElement.checkVisibility()) look(node.nodeValue, node.parentElement)
    for (const e of document.querySelectorAll('[aria-label], [placeholder], [title], [alt]'))
      for (const name of ['aria-label', 'placeholder', 'title', 'alt'])
        if (e.checkVisibility()) look(e.getAttribute(name) ?? '', e)
    return [...new Set(found)]
  })

await check('no screen has an English sentence in Chinese', { part: 'scale', locale: 'zh-CN' }, async (page) => {
  const all = []
  let screens = 0
  await tour(page, async (at) => {
    screens++
    for (const text of await english(page)) all.push(`${at}: ${text}`)
    expect((await page.locator('html').getAttribute('lang')).startsWith('zh'), `${at} is not in Chinese`)
    await picture(page, `zh-${screens}-${at.replace(/\W+/g, '-')}`)
  })
  expect(screens >= 25, `${screens} screens`)
  expect(!all.length, all.join('\n'))
})

/** Writes Pinyin, and presses Enter, Escape and an arrow while it is not yet chosen. */
async function compose(page, context, text) {
  const input = await context.newCDPSession(page)
  await input.send('Input.imeSetComposition', { text: 'liushi', selectionStart: 6, selectionEnd: 6 })
  for (const [key, code] of [
    ['Enter', 'Enter'],
    ['ArrowDown', 'ArrowDown'],
  ])
    await input.send('Input.dispatchKeyEvent', { type: 'keyDown', key, code, windowsVirtualKeyCode: 229 })
  await page.waitForTimeout(300)
  return () => input.send('Input.insertText', { text })
}

await check('Enter in a composition sends nothing: composer, rename, search, palette', {}, async (page, context) => {
  await ask(page, 'hello')
  await page.getByText('You said: hello').first().waitFor()
  const asked = []
  page.on('request', (r) => {
    if (r.method() !== 'GET' || r.url().includes('/search?')) asked.push(`${r.method()} ${r.url()}`)
  })
  const nothing = (where) => expect(!asked.length, `${where} sent ${asked}`)
  await composer(page).focus()
  let choose = await compose(page, context, '流失')
  nothing('the composer')
  await choose()
  expect((await composer(page).inputValue()) === '流失', 'what was composed is not in the composer')
  await composer(page).fill('')
  // Rename.
  await page
    .locator('nav, aside')
    .getByRole('button', { name: /^Actions/i })
    .first()
    .click()
  await page.getByRole('menuitem', { name: 'Rename' }).click()
  const field = page.getByRole('dialog').getByRole('textbox')
  await field.fill('')
  choose = await compose(page, context, '流失的客户')
  nothing('the dialog')
  expect(await field.isVisible(), 'the dialog is gone')
  await choose()
  await page.keyboard.press('Enter')
  await page.getByRole('link', { name: '流失的客户' }).first().waitFor()
  asked.length = 0
  // The palette.
  const before = page.url()
  await page.keyboard.press('Control+k')
  await page.getByRole('combobox').waitFor()
  choose = await compose(page, context, '流失')
  expect(page.url() === before && (await page.getByRole('combobox').count()) === 1, 'the palette has acted')
  nothing('the palette')
  await choose()
  await until(() => asked.some((a) => a.includes('/search?')), 'the palette searches')
  await page.keyboard.press('Escape')
  // The page that searches.
  await page.goto('search')
  await page.getByRole('searchbox').focus()
  asked.length = 0
  choose = await compose(page, context, '流失')
  nothing('the search')
  await choose()
  await until(() => asked.length > 0, 'the page searches')
})

await check('bold text ends beside Chinese punctuation', { locale: 'zh-CN' }, async (page) => {
  const code = "run: open('说明.md', 'w').write('前**重点。**后，“**引号**”和**（括号）**都粗。')"
  const field = page.getByRole('textbox', { name: '你的问题' })
  await field.fill(code)
  await field.press('Enter')
  await page.getByText('It ran.').waitFor()
  await page
    .locator('main')
    .last()
    .getByRole('button', { name: /^说明\.md/ })
    .first()
    .click()
  const dialog = page.getByRole('dialog')
  for (const text of ['重点。', '引号', '（括号）']) await dialog.locator('strong', { hasText: text }).waitFor()
  expect(!(await dialog.innerText()).includes('**'), await dialog.innerText())
})
