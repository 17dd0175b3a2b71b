// Every screen of the page, one after the other, in whichever language it is shown.
import { env, expect, until } from './kit.mjs'
import { settled } from './people.mjs'

const box = (page) => page.getByRole('textbox', { name: /^(Your question|你的问题)$/ })
const press = (page, name) => page.getByRole('button', { name }).first().click()

async function ask(page, text, n) {
  await box(page).fill(text)
  await box(page).press('Enter')
  if (!n) return
  await until(async () => (await page.getByText('It ran.').count()) === n, `answer ${n}`)
  await settled(page) // the end of a turn has the page fetch it anew; a press meanwhile may find its button replaced
}

async function closed(page) {
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
}

const work = [
  'run: import matplotlib.pyplot as plt',
  "open('numbers.csv', 'w').write('a,b\\n1,2\\n')",
  "open('text.md', 'w').write('# 1\\n')",
  'plt.plot([1, 2])',
  'plt.show()',
  "import pandas as pd\ntable = pd.DataFrame({'a': [1, 2]})\ntable",
].join('\n')

/** Calls visit with the name of each screen while that is shown. */
export async function tour(page, visit) {
  for (const at of ['./', 'sessions', 'settings', 'search?q=zzzz']) {
    await page.goto(at)
    await page.locator('main').first().waitFor()
    await settled(page)
    await visit(at)
  }
  await administration(page, visit)
  await page.goto('settings')
  await press(page, /^((Set a|Change the) password|(设置|更改)密码)$/)
  await page.getByRole('dialog').waitFor()
  await visit('password')
  await closed(page)
  await page.keyboard.press('Control+k')
  await page.getByRole('listbox').waitFor()
  await visit('palette')
  await closed(page)
  await page.keyboard.press('?')
  await page.getByRole('dialog').waitFor()
  await visit('shortcuts')
  await closed(page)
  await conversation(page, visit)
}

async function administration(page, visit) {
  const me = await (await page.request.get('api/v1/me')).json()
  for (const section of [
    'projects',
    `projects/${me.project}`,
    'users',
    'keys',
    'usage',
    'audit',
    'sessions',
    'models',
    'server',
  ]) {
    await page.goto(`admin/${section}`)
    await page.getByRole('heading').first().waitFor()
    await settled(page)
    await visit(`admin/${section.replace(me.project, 'one')}`)
  }
}

async function conversation(page, visit) {
  await page.goto('./')
  await ask(page, work, 1)
  await visit('answer')
  await page.locator('[data-step]').first().click()
  await visit('answer, unfolded')
  await page.locator('main img').first().hover()
  await press(page, /^(Full screen|全屏)$/)
  await page.getByRole('dialog').waitFor()
  await visit('lightbox')
  await closed(page)
  for (const name of [/^numbers\.csv/, /^text\.md/]) {
    await page.locator('main').last().getByRole('button', { name }).first().click()
    await page.getByRole('dialog').waitFor()
    await settled(page)
    await visit(`preview of ${name.source}`)
    await closed(page)
  }
  await press(page, /^(Files and session|文件与会话)$/)
  for (const tab of [/^(Files|文件)$/, /^(Variables|变量)$/, /^(Packages|包)$/, /^(Session|会话)$/]) {
    await press(page, tab)
    await page.waitForTimeout(600)
    await visit(`panel ${tab.source}`)
  }
  await press(page, /^(Files and session|文件与会话)$/)
  await press(page, /^(Notebook|笔记本)$/)
  await page.locator('.cm-content').first().waitFor()
  await visit('notebook')
  await press(page, /^(Conversation|对话)$/)
  await dialogs(page, visit)
  await page.getByRole('switch').click()
  await ask(page, 'run: waits = 1')
  await page.locator('.cm-content').first().waitFor()
  await visit('approval')
}

/** Renaming, deleting, going back, sharing, and what somebody else sees of it. */
async function dialogs(page, visit) {
  const menu = () =>
    page
      .locator('nav, aside')
      .getByRole('button', { name: /的操作|^Actions|actions/i })
      .first()
  for (const [item, name] of [
    [/^(Rename|重命名)$/, 'rename'],
    [/^(Remove|Delete|删除)$/, 'delete'],
  ]) {
    await menu().click()
    await page.getByRole('menuitem', { name: item }).click()
    await page.getByRole('dialog').waitFor()
    await visit(name)
    await closed(page)
  }
  await press(page, /^(Undo this turn|撤销)/)
  await page.getByRole('dialog').waitFor()
  await visit('going back')
  await closed(page)
  await press(page, /^(Share and export|分享与导出)$/)
  await page.getByRole('menuitem', { name: /^(Share|分享)$/ }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('button', { name: /^(Create link|生成链接)$/ }).click()
  const address = await dialog.locator('input[readonly]').inputValue()
  await visit('share')
  await closed(page)
  const here = page.url()
  await page.goto(address)
  await page.getByText('It ran.').waitFor()
  await visit('shared')
  const invited = await page.request.post('api/v1/invitations', {
    data: { role: 'member', name: 'Eve' },
    headers: { Authorization: `Bearer ${env('COVE_KEY')}` },
  })
  expect(invited.ok(), `an invitation: ${invited.status()}`)
  await page.goto(`./#invitation=${(await invited.json()).code}`)
  await page.getByText('Eve').first().waitFor()
  await visit('invitation')
  await page.goto(here)
  await page.getByText('It ran.').first().waitFor()
}
