// Questions that wait: they belong to the server, and not to the tab that they were written in.
import { check, env, expect, order, picture, until } from '../kit.mjs'
import { answered, ask, asViewer, composer, goOn, waits } from '../people.mjs'

const queueOf = (page) => page.getByRole('list', { name: 'Up next' }).getByRole('listitem')

/** Waits until a queue has these questions, in their order. */
const has = (page, ...texts) =>
  until(async () => {
    const said = await queueOf(page).allInnerTexts()
    return said.length === texts.length && texts.every((text, n) => said[n].includes(text))
  }, `the queue: ${texts}`)

/** Begins a turn that waits, and puts questions behind it. */
async function begin(page, ...texts) {
  await ask(page, `run: print('begun')\n${waits()}`)
  const conversation = await until(async () => page.url().match(/\/c\/(cnv_[0-9a-z]+)/)?.[1], 'the conversation')
  await page.getByText('begun', { exact: true }).first().waitFor()
  for (const [n, text] of texts.entries()) {
    await ask(page, text)
    await has(page, ...texts.slice(0, n + 1))
  }
  return conversation
}

await check('a queue is seen in other tabs, and asked when none is open', {}, async (page, context) => {
  const conversation = await begin(page, 'the first in line', 'the second in line', 'the third in line')
  const other = await context.newPage()
  await other.goto(`c/${conversation}`)
  await has(other, 'the first', 'the second', 'the third')
  // What changes in one is seen in the other.
  await queueOf(other).filter({ hasText: 'the second' }).getByRole('button', { name: 'Remove from the queue' }).click()
  await has(page, 'the first', 'the third')
  await ask(other, 'the last in line')
  await has(page, 'the first', 'the third', 'the last')
  await queueOf(page).filter({ hasText: 'the third' }).getByRole('button', { name: 'Edit' }).click()
  await has(other, 'the first', 'the last')
  await until(async () => (await composer(page).inputValue()) === 'the third in line', 'the question in the composer')
  await picture(other, 'queue-elsewhere')
  await page.close()
  await other.close()
  // Nobody looks.
  const { items } = await (await context.request.get(`api/v1/conversations/${conversation}/turns`)).json()
  const put = await context.request.put(`api/v1/sessions/${items[0].session}/files/go`, {
    data: Buffer.from('go'),
    headers: { 'Content-Type': 'application/octet-stream', 'Sec-Fetch-Site': 'same-origin' },
  })
  expect(put.ok(), await put.text())
  const turns = await until(async () => {
    const all = (await (await context.request.get(`api/v1/conversations/${conversation}/turns`)).json()).items
    return all.length === 3 && all.every((t) => t.state === 'completed') && all
  }, 'three turns')
  expect(turns[1].answer === 'You said: the first in line', JSON.stringify(turns[1]))
  expect(turns[2].answer === 'You said: the last in line' && turns[2].parent === turns[1].id, JSON.stringify(turns[2]))
  const later = await context.newPage()
  await later.goto(`c/${conversation}`)
  await answered(later, 'You said: the last in line')
  expect(!(await queueOf(later).count()), 'something still waits')
})

for (const how of ['kill', 'stop'])
  await check(`a queue outlives its server: ${how}`, { server: 'COVE_MORTAL', down: true }, async (page) => {
    const conversation = await begin(page, 'asked after the restart', 'and asked last')
    await order(how)
    await answered(page, 'You said: and asked last')
    const turns = (await (await page.request.get(`api/v1/conversations/${conversation}/turns`)).json()).items
    const said = turns.map((t) => `${t.prompt.slice(0, 20)} ${t.state}`).join(', ')
    expect(turns.length === 3 && turns[1].prompt === 'asked after the restart', `the turns are ${said}`)
    expect(turns[0].state !== 'completed' && turns[2].state === 'completed', `the turns are ${said}`)
    await until(async () => !(await queueOf(page).count()), 'the queue is empty')
  })

await check('a viewer sees a queue and puts nothing into it', {}, async (page, context) => {
  const conversation = await begin(page, 'the only one in line')
  await asViewer(context, async (viewer) => {
    await viewer.goto(`c/${conversation}`)
    await has(viewer, 'the only one')
    await ask(viewer, 'a question of a viewer')
    await viewer.getByText('You do not have permission to do this.').first().waitFor()
    await until(
      async () => (await composer(viewer).inputValue()) === 'a question of a viewer',
      'it is in the composer again',
    )
    await queueOf(viewer).getByRole('button', { name: 'Remove from the queue' }).click()
    await has(viewer, 'the only one')
  })
  await has(page, 'the only one')
  await goOn(page)
  await answered(page, 'You said: the only one in line')
})

await check('a question whose asker may not ask any more stays, with the reason', {}, async (page, context) => {
  const call = (method, path, data, key = env('COVE_KEY')) =>
    context.request.fetch(`api/v1/${path}`, {
      method,
      ...(data ? { data } : {}),
      headers: { Authorization: `Bearer ${key}` },
    })
  const conversation = await begin(page)
  const made = await (await call('POST', 'keys', { name: 'short-lived' })).json()
  const put = await call('POST', `conversations/${conversation}/queue`, { prompt: 'by a key that ends' }, made.text)
  expect(put.status() === 201, await put.text())
  await has(page, 'by a key that ends')
  await call('DELETE', `keys/${made.key.id}`)
  await goOn(page)
  await page.getByText('Whoever queued it can no longer ask').first().waitFor()
  await picture(page, 'queue-held')
  // Who tries it again asks it.
  await queueOf(page).getByRole('button', { name: 'Try again' }).click()
  await answered(page, 'You said: by a key that ends')
})
