// Code that a person runs asks that person: input() and getpass(), in a step and in a cell.
import { check, expect, picture, until } from '../kit.mjs'
import { answered, ask, asViewer, audit, ended } from '../people.mjs'

const code = `import getpass
name = input('Your name: ')
word = getpass.getpass()
try:
    input('More: ')
except EOFError:
    print('hello', name, len(word))`

/** Runs the last step with other code, which is put in as a person would paste it. */
async function change(page, text) {
  const step = page.locator('[data-step]').last()
  await step.focus()
  await page.keyboard.press('e')
  const editor = page.getByRole('textbox', { name: 'Code of this step' })
  await editor.waitFor()
  await editor.press('Control+a')
  await page.keyboard.press('Delete') // else the browser gives what is put in the style of what it replaces, which the policy refuses
  await page.keyboard.insertText(text)
  await page.keyboard.press('Control+Enter')
}

await check('code of a step that is run again asks, in every window', {}, async (page, context) => {
  await ask(page, "run: print('first')")
  await answered(page, 'It ran.')
  await ended(page)
  await change(page, code)
  const field = page.getByRole('textbox', { name: 'Your name:' })
  await field.waitFor()
  await until(
    () => field.evaluate((f) => f === document.activeElement),
    'the focus in the field of the step where the person is',
  )
  await picture(page, 'input-asks')
  await audit(page, 'a step that asks')
  // After a reload the field is there again, and in another window, where nobody is led to it.
  await page.reload()
  await field.waitFor()
  expect(!(await field.evaluate((f) => f === document.activeElement)), 'the focus went to a step where nobody is')
  const other = await context.newPage()
  await other.goto(page.url())
  const theirs = other.getByRole('textbox', { name: 'Your name:' })
  await theirs.waitFor()
  await theirs.fill('Ada')
  await theirs.press('Enter')
  for (const window of [page, other]) await window.getByText('Ada', { exact: true }).first().waitFor()
  await until(async () => (await field.count()) === 0, 'the field is gone where it was not answered')
  // A password is masked, and in no window.
  const password = other.getByLabel('Password:')
  await password.waitFor()
  expect((await password.getAttribute('type')) === 'password', 'the password is shown')
  await until(() => password.evaluate((f) => f === document.activeElement), 'the focus in the next field')
  await picture(other, 'input-password')
  await password.fill('sesame')
  await password.press('Enter')
  await page.getByRole('textbox', { name: 'More:' }).waitFor()
  await page.getByRole('button', { name: 'No input' }).click()
  for (const window of [page, other]) {
    await window.getByText('hello Ada 6').first().waitFor()
    expect(!(await window.locator('main').innerText()).includes('sesame'), 'the password is on the page')
  }
  await picture(page, 'input-answered')
  await page.emulateMedia({ colorScheme: 'dark' })
  await picture(page, 'input-answered-dark')
  await other.close()
})

await check('a viewer sees that a step waits for input, without a field', {}, async (page, context) => {
  await ask(page, "run: print('first')")
  await answered(page, 'It ran.')
  await ended(page)
  await change(page, "print('hello', input('Your name: '))")
  const field = page.getByRole('textbox', { name: 'Your name:' })
  await field.waitFor()
  await asViewer(context, async (viewer) => {
    await viewer.goto(new URL(page.url()).pathname.replace(/^.*\/c\//, 'c/'))
    await viewer.getByText('Your name:', { exact: true }).waitFor()
    await viewer.getByText('waiting for input', { exact: true }).waitFor()
    expect((await viewer.getByRole('textbox', { name: 'Your name:' }).count()) === 0, 'a viewer has a field')
    await picture(viewer, 'input-viewer')
  })
  await field.fill('Ada')
  await field.press('Enter')
  await page.getByText('hello Ada').first().waitFor()
})

await check('code of the model gets the end of the input at once', {}, async (page) => {
  await ask(page, "run: input('who? ')")
  await page.getByText('EOFError').first().waitFor()
  expect((await page.getByRole('textbox', { name: 'who?' }).count()) === 0, 'there is a field that nobody is asked for')
})

await check('a cell asks, and its field ends with the code', {}, async (page) => {
  await page
    .getByRole('link', { name: 'New notebook' })
    .or(page.getByRole('button', { name: 'New notebook' }))
    .first()
    .click()
  await page.locator('.cm-content').first().click()
  await page.keyboard.insertText("print('hello', input('Your name: '))\ninput()")
  await page.keyboard.press('Control+Enter')
  const field = page.getByRole('textbox', { name: 'Your name:' })
  await field.waitFor()
  await until(() => field.evaluate((f) => f === document.activeElement), 'the focus in the field of the cell')
  await page.keyboard.type('Ada')
  await page.keyboard.press('Enter')
  await page.getByText('hello Ada').first().waitFor()
  const unnamed = page.getByRole('textbox', { name: 'Input', exact: true })
  await unnamed.waitFor()
  await picture(page, 'input-cell')
  await page.getByRole('button', { name: 'Stop' }).first().click()
  await until(async () => (await unnamed.count()) === 0, 'the field is gone with the code')
})
