// Widgets of code are drawn, move, and stay in their frame.
import { check, expect, picture, until } from '../kit.mjs'
import { answered, ask, asViewer, cell, ended } from '../people.mjs'

const first = `import ipywidgets as w
from IPython.display import display
size = w.IntSlider(value=3, max=10, description='size')
said = w.Label('nothing yet')
size.observe(lambda c: setattr(said, 'value', 'it is %d' % c['new']), 'value')
out = w.Output()
button = w.Button(description='Press')
presses = []
def pressed(b):
    presses.append(1)
    with out:
        print('pressed', len(presses))
button.on_click(pressed)
display(w.VBox([size, said, button, out]))`

/** Frames of outputs in which something stands. */
export async function frameWith(page, text) {
  let seen = []
  const look = async () => {
    seen = []
    for (const f of page.frames().filter((f) => f.url().includes('/frame'))) {
      const said = await f
        .locator('body')
        .innerText()
        .catch(() => '')
      seen.push(said)
      if (said.includes(text)) return f
    }
    return null
  }
  return await until(look, `a frame with ${text}`).catch((e) => {
    throw new Error(`${e.message}; there is ${JSON.stringify(seen)}`)
  })
}

/** Moves the slider of a frame with keys. */
async function press(frame, key, times) {
  const handle = frame.locator('.noUi-handle').first()
  await handle.focus()
  for (let i = 0; i < times; i++) await handle.press(key)
}

await check('widgets of an answer move, and their code hears it', {}, async (page) => {
  await ask(page, `run: ${first}`)
  await answered(page, 'It ran.')
  await ended(page)
  let frame = await frameWith(page, 'nothing yet')
  await press(frame, 'ArrowRight', 2)
  await frameWith(page, 'it is 5')
  await frame.getByRole('button', { name: 'Press' }).click()
  await frameWith(page, 'pressed 1')
  await picture(page, 'widgets')
  // The interpreter has it, also for who comes later.
  await page.reload()
  frame = await frameWith(page, 'it is 5')
  expect((await frame.locator('.widget-readout').first().innerText()).trim() === '5', 'the slider is elsewhere')
  await frameWith(page, 'pressed 1')
  await ask(page, 'run: print("size is", size.value, len(presses))')
  await page.getByText('It ran.').nth(1).waitFor()
  await page.locator('[data-step]').nth(1).press('Enter')
  await page.getByText('size is 5 1').waitFor()
})

const gallery = `import ipywidgets as w, datetime
from IPython.display import display
from tqdm.notebook import tqdm
a, b = w.FloatSlider(description='from', max=1, step=0.1), w.FloatSlider(description='to', max=1, step=0.1)
linked = w.jslink((a, 'value'), (b, 'value'))
choice = w.Dropdown(options=['red', 'green'], description='colour')
many = w.SelectMultiple(options=['ant', 'bee', 'cat'], description='animals')
text = w.Text(value='some text', description='text')
yes = w.Checkbox(value=True, description='yes')
day = w.DatePicker(value=datetime.date(2026, 12, 1), description='day')
page1 = w.VBox([a, b, choice, many, text, yes, day, w.FloatProgress(value=0.4, max=1, description='done')])
tabs = w.Tab([page1, w.Accordion([w.HTML('<b>bold</b>')], titles=['folded'])], titles=['first', 'second'])
display(tabs, w.HBox([w.Button(description='one', button_style='primary'), w.ToggleButton(value=True, description='two'), w.Play(max=3)]))
for i in tqdm(range(7), desc='steps'): pass`

await check('interact, links, tabs and bars work in a notebook', {}, async (page) => {
  await page
    .getByRole('link', { name: 'New notebook' })
    .or(page.getByRole('button', { name: 'New notebook' }))
    .click()
  await cell(
    page,
    'from ipywidgets import interact\ndef f(x):\n    print("x is", x)\n    return x * 11\ninteract(f, x=(0, 10));',
  )
  let frame = await frameWith(page, 'x is 5')
  await frameWith(page, '55')
  await press(frame, 'ArrowRight', 3)
  await frameWith(page, 'x is 8')
  await frameWith(page, '88')
  await cell(page, gallery)
  frame = await frameWith(page, 'colour')
  await press(frame, 'ArrowRight', 3)
  await until(
    async () => (await frame.locator('.widget-readout').allInnerTexts()).slice(0, 2).join() === '0.30,0.30',
    'both ends of the link',
  )
  await frame.locator('select').first().selectOption('green')
  await frame.locator('input[type=text]').first().fill('typed')
  await frame.locator('input[type=text]').first().press('Enter')
  await frame.locator('input[type=checkbox]').first().uncheck()
  await frameWith(page, '7/7')
  // What was moved last is on its way for a moment.
  const { items } = await (await page.request.get('api/v1/sessions')).json()
  await until(async () => {
    const said = await page.request.get(`api/v1/sessions/${items[0].id}/kernels/main/widgets`)
    const text = said.ok() ? await said.text() : ''
    return ['"index":1', '"value":"typed"', '"value":false'].every((part) => text.includes(part))
  }, 'the interpreter has what was moved')
  await cell(page, 'print(a.value, b.value, choice.value, text.value, yes.value)')
  await page.getByText('0.3 0.3 green typed False').waitFor()
  await picture(page, 'widgets-gallery')
  // A move is no cell.
  await page.reload()
  await frameWith(page, 'x is 8')
  expect(!(await page.getByText('comms.take').count()), 'moves are among the cells')
})

await check('what a widget holds reaches nothing', { refused: true }, async (page) => {
  const bad = '<img src=x onerror="parent.hurt = 1; window.hurt = 1"><script>window.hurt = 1</script>'
  await ask(
    page,
    `run: import ipywidgets as w
bad = ${JSON.stringify(bad)}
hostile = bad + '<meta http-equiv="refresh" content="0;url=/frame?scripts=1"><a href="javascript:window.hurt=1">go</a><form action="/"><button>send</button></form><p>hello</p>'
from traitlets import Unicode
class Foreign(w.DOMWidget):
    _model_name, _model_module = Unicode('M').tag(sync=True), Unicode('elsewhere').tag(sync=True)
    _view_name, _view_module = Unicode('V').tag(sync=True), Unicode('elsewhere').tag(sync=True)
w.VBox([w.HTML(hostile), w.HTML('x', description=bad, description_allow_html=True), w.HTMLMath(hostile), Foreign(), w.Password(value='hunter2')])`,
  )
  await answered(page, 'It ran.')
  const frame = await frameWith(page, 'hello')
  await frameWith(page, 'A widget of elsewhere cannot be shown here')
  await frameWith(page, 'A password widget cannot be used here')
  const { items } = await (await page.request.get('api/v1/sessions')).json()
  const told = await page.request.get(`api/v1/sessions/${items[0].id}/kernels/main/widgets`)
  expect(told.ok() && !(await told.text()).includes('hunter2'), 'what a password widget holds is told')
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))))
  expect(!(await page.evaluate(() => window.hurt)), 'a script reached the page')
  expect(!(await frame.evaluate(() => window.hurt)), 'a script ran in the frame')
  expect(
    !(await frame.locator('meta[http-equiv], .cove-widgets script, form').count()),
    'what leads elsewhere is there',
  )
  expect(
    page.frames().every((f) => !f.url().includes('scripts')),
    'the frame went elsewhere',
  )
})

await check(
  'who may not run code sees widgets, and they stand still when Python has them no more',
  {},
  async (page, context) => {
    await ask(page, `run: ${first}`)
    await answered(page, 'It ran.')
    await ended(page)
    const frame = await frameWith(page, 'nothing yet')
    await press(frame, 'ArrowRight', 1)
    await frameWith(page, 'it is 4')
    const conversation = page.url().match(/cnv_[0-9a-z]+/)[0]
    await asViewer(context, async (viewer) => {
      await viewer.goto(`c/${conversation}`)
      const still = await frameWith(viewer, 'it is 4')
      await viewer.getByText('You can see this widget, but not use it').waitFor()
      expect(await still.getByRole('button', { name: 'Press' }).isDisabled(), 'a viewer may press')
    })
    const turns = await (await page.request.get(`api/v1/conversations/${conversation}/turns`)).json()
    const headers = { 'Sec-Fetch-Site': 'same-origin' }
    const made = await page.request.post(`api/v1/conversations/${conversation}/shares`, { data: {}, headers })
    expect(made.ok(), await made.text())
    const again = await page.request.post(`api/v1/sessions/${turns.items[0].session}/kernels/main/restart`, { headers })
    expect(again.ok(), await again.text())
    await page.getByText('Python no longer has this widget').waitFor()
    const still = await frameWith(page, 'it is 4')
    expect(await still.getByRole('button', { name: 'Press' }).isDisabled(), 'it may be pressed')
    await picture(page, 'widgets-gone')
    await page.goto(`shared/${(await made.json()).code}`)
    const shared = await frameWith(page, 'nothing yet')
    await page.getByText('A widget as it was then').waitFor()
    expect(await shared.getByRole('button', { name: 'Press' }).isDisabled(), 'it may be pressed in a shared page')
    await picture(page, 'widgets-shared')
  },
)
