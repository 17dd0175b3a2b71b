// How tables are drawn: widths, numbers, profiles, and rows that are out of date.
import { check, expect, picture, until } from '../kit.mjs'
import { cell } from '../people.mjs'

const frame = `import pandas as pd, numpy as np
n = 100000
pd.DataFrame({'id': np.arange(n), 'amount': np.where(np.arange(n) % 3 == 0, 64, np.arange(n) * 1234.25), 'city': np.where(np.arange(n) % 4 == 0, 'Zürich', 'Rome'), 'key': [f'k{i}' for i in range(n)]})`

/** What of the grid does not have the room that it needs. */
const cutNumbers = (grid) =>
  grid.evaluate((e) =>
    [...e.querySelectorAll('[data-kind=number]')]
      .flatMap((c) => (c.matches('[role=columnheader]') ? [...c.querySelectorAll('button > span')] : [c]))
      .filter((c) => c.scrollWidth > c.clientWidth)
      .map((c) => c.textContent),
  )
const texts = (grid, column) => grid.locator(`[role=gridcell][data-column="${column}"]`).allInnerTexts()

await check(
  'a table’s numbers are whole in every order, aligned and grouped',
  { server: 'COVE_ALONE' },
  async (page) => {
    await cell(page, frame)
    const grid = page.getByRole('grid').first()
    await grid.waitFor()
    for (const name of ['id', 'amount']) {
      const head = grid.getByRole('button', { name, exact: true })
      await head.click()
      await until(() => grid.locator('[aria-sort=ascending]').count(), 'sorted')
      await head.click()
      const first = name === 'id' ? [1, '99999'] : [2, '123,422,531.50']
      await until(async () => (await texts(grid, first[0])).filter(Boolean)[0] === first[1], 'the last rows come first')
      const cut = await cutNumbers(grid)
      expect(!cut.length, `cut: ${cut.join(', ')}`)
    }
    const amounts = (await texts(grid, 2)).filter(Boolean)
    expect(amounts[0] === '123,422,531.50', `grouped, with two decimals: ${amounts[0]}`)
    expect(
      amounts.every((a) => /\.\d\d$/.test(a)),
      `decimals: ${amounts.slice(0, 9)}`,
    )
    expect((await texts(grid, 1)).includes('99998'), 'an id is not grouped')
    // The name ends where the numbers end.
    const right = await grid.evaluate((e) => {
      const range = document.createRange()
      const end = (node) => {
        range.selectNodeContents(node)
        return range.getBoundingClientRect().right
      }
      return (
        end(e.querySelectorAll('[role=columnheader]')[2].querySelector('button > span')) -
        end(e.querySelector('[role=gridcell][data-column="2"]'))
      )
    })
    expect(Math.abs(right) < 2, `the name ends ${right} pixels from the numbers`)
    await picture(page, 'table-numbers')
    await page.getByRole('button', { name: 'Group digits (1,000)' }).click()
    await until(async () => (await texts(grid, 2))[0] === '123422531.50', 'not grouped')
  },
)

await check(
  'a column of a table is dragged wider, and fits after a double click',
  { server: 'COVE_ALONE' },
  async (page) => {
    await cell(page, frame)
    const grid = page.getByRole('grid').first()
    await grid.waitFor()
    const head = grid.getByRole('columnheader').nth(3)
    const wide = async () => (await head.boundingBox()).width
    const before = await wide()
    const named = (await head.getByRole('button').innerText()).trim()
    const edge = await head.getByRole('separator', { name: `Width of ${named}` }).boundingBox()
    await page.mouse.move(edge.x + 4, edge.y + 10)
    await page.mouse.down()
    await page.mouse.move(edge.x + 104, edge.y + 10, { steps: 4 })
    await page.mouse.up()
    await until(async () => Math.abs((await wide()) - before - 100) < 3, 'a hundred pixels wider')
    expect((await head.getAttribute('aria-sort')) === 'none', 'dragging does not sort')
    await head.getByRole('separator').dblclick()
    await until(async () => (await wide()) < before + 20, 'as wide as its values')
    await head.getByRole('button').focus()
    const fit = await wide()
    await page.keyboard.press('Shift+ArrowRight')
    await until(async () => (await wide()) > fit, 'wider by a key')
  },
)

await check('a column’s profile says its most frequent value, in words', { server: 'COVE_ALONE' }, async (page) => {
  await cell(page, frame)
  const grid = page.getByRole('grid').first()
  await grid.waitFor()
  await page.getByRole('button', { name: 'Columns', exact: true }).first().click()
  const city = grid.getByRole('columnheader').nth(3)
  await until(async () => (await city.innerText()).includes('2 distinct'), 'counted')
  for (const said of ['text', 'Rome · 75%']) expect((await city.innerText()).includes(said), await city.innerText())
  const key = grid.getByRole('columnheader').nth(4)
  await until(async () => (await key.innerText()).includes('each value once'), 'each value once')
  const id = grid.getByRole('columnheader').nth(1)
  expect(/\bnumber\b/.test(await id.innerText()), await id.innerText())
  const amount = grid.getByRole('columnheader').nth(2)
  expect((await amount.innerText()).includes('64 to 123.4M'), await amount.innerText())
  await picture(page, 'table-profile')
})

await check('old rows of a table are dimmed while a filter is looked up', { server: 'COVE_ALONE' }, async (page) => {
  await cell(page, frame)
  const grid = page.getByRole('grid').first()
  await grid.waitFor()
  let go
  const gone = new Promise((done) => {
    go = done
  })
  await page.route(/filter=nothing-here/, async (route) => {
    await gone
    await route.continue()
  })
  await page.getByPlaceholder('Filter rows').first().fill('nothing-here')
  const shade = () =>
    grid.evaluate((e) => {
      const row = e.querySelector(`[role=row][aria-rowindex="2"]`)
      return row ? getComputedStyle(row).opacity : 'none'
    })
  await until(async () => Number(await shade()) < 0.6, 'dimmed')
  await picture(page, 'table-asking')
  go()
  await page.getByText('0 of 100,000 rows').waitFor()
  await page.getByPlaceholder('Filter rows').first().fill('')
  await until(async () => Number(await shade()) === 1, 'at full strength again')
})
