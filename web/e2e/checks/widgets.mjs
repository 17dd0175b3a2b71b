// Widgets of code are drawn, move, and stay in their frame.
import { check, expect, picture, until } from '../kit.mjs'
import { answered, ask, ended } from '../people.mjs'

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
