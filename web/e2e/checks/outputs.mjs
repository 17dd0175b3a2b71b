// What code and models say is shown, and cannot hurt.
import { check, expect, picture, until } from '../kit.mjs'
import { answered, ask, ended, wrote } from '../people.mjs'

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
  await ended(page)
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

const everything = `# One

## Two

### Three

#### Four

##### Five

###### Six

- a
- b
  1. c
  2. d
     - e
  - f
    - g

1. h
2. i
   - j
   1. k

3. l

- [x] m
- [ ] n

> said

---

**bold** *slanted* ~~gone~~ \`code\`

| p | q |
|---|--:|
| r | 1 |
`

/** How the items of lists are marked, by their text, and what else of a text has a look of its own. */
const looks = (root) =>
  root.evaluate((box) => {
    const style = (e) => getComputedStyle(e)
    const marks = {}
    for (const li of box.querySelectorAll('li')) {
      const own = [...li.childNodes].map((n) => (/^(UL|OL)$/.test(n.nodeName) ? '' : n.textContent)).join('')
      const mark = style(li).listStyleType
      marks[own.trim()] = Number.parseFloat(style(li.parentElement).paddingInlineStart) < 16 ? `${mark}, cut off` : mark
    }
    const sizes = [...box.querySelectorAll('h3, h4, h5, h6')].map(
      (h) => `${style(h).fontSize} ${style(h).fontWeight} ${style(h).color}`,
    )
    const of = (name) => style(box.querySelector(name))
    return {
      marks,
      sizes,
      rule: of('hr').borderTopWidth,
      quote: of('blockquote').borderInlineStartWidth,
      bold: of('strong').fontWeight,
      slanted: of('em').fontStyle,
      gone: of('del').textDecorationLine,
      number: of('td:last-child').textAlign,
    }
  })

await check('Markdown has the marks that it says, in an answer, an output and a shared page', {}, async (page) => {
  const holds = async (root, where) => {
    await root.getByText('said', { exact: true }).waitFor()
    const got = await looks(root)
    const want = { a: 'disc', b: 'disc', c: 'decimal', d: 'decimal', e: 'square', f: 'circle', g: 'square' }
    Object.assign(want, { h: 'decimal', i: 'decimal', j: 'circle', k: 'decimal', l: 'decimal', m: 'none', n: 'none' })
    for (const [item, mark] of Object.entries(want))
      expect(got.marks[item] === mark, `${where}: ${item} has ${got.marks[item]}: ${JSON.stringify(got.marks)}`)
    expect(got.sizes.length === 6 && new Set(got.sizes).size >= 4, `${where}: the headings are ${got.sizes}`)
    expect(Number.parseFloat(got.rule) >= 1 && Number.parseFloat(got.quote) >= 1, `${where}: ${JSON.stringify(got)}`)
    expect(got.bold >= 600 && got.slanted === 'italic' && got.gone === 'line-through', JSON.stringify(got))
    expect(/right|end/.test(got.number), `${where}: numbers are at the ${got.number}`)
  }
  const markdown = (root) => root.locator('[class*=markdown]', { hasText: 'slanted' }).first()
  await ask(page, `say: ${everything}`)
  await holds(markdown(page.locator('[data-turn]').first()), 'an answer')
  await picture(page, 'markdown')
  await ask(
    page,
    `run: from IPython.display import Markdown, display\ndisplay(Markdown(${JSON.stringify(everything)}))`,
  )
  await answered(page, 'It ran.')
  await wrote(page, 'said')
  await holds(markdown(page.locator('[data-step]').first().locator('xpath=ancestor::section[1]')), 'an output')
  const conversation = page.url().match(/cnv_[0-9a-z]+/)[0]
  const made = await page.request.post(`api/v1/conversations/${conversation}/shares`, {
    data: {},
    headers: { 'Sec-Fetch-Site': 'same-origin' },
  })
  expect(made.ok(), await made.text())
  await page.goto(`shared/${(await made.json()).code}`)
  await holds(markdown(page.locator('main')), 'a shared page')
})

await check('what needed too much memory is told once', {}, async (page) => {
  await ask(
    page,
    "run: parts = []\nwhile True:\n    parts.append(bytearray(64 << 20))\n    parts[-1][::4096] = b'x' * len(parts[-1][::4096])",
  )
  await answered(page, 'It ran.')
  await wrote(page, /Out of memory: the code needed more than the \d+ MiB/)
  const step = page.locator('[data-step]').last().locator('xpath=ancestor::section[1]')
  const text = await step.innerText()
  expect(text.match(/out of memory/gi).length === 2, `beside the step's name and in it: ${text}`)
  expect(text.split(/variables are/i).length === 2, text)
  await picture(page, 'memory')
})
