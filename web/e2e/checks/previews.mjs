// Files that are looked at, and that are sent.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { check, picture, until } from '../kit.mjs'
import { answered, ask, wrote } from '../people.mjs'

const code = [
  "open('numbers.csv', 'w').write('city,people\\nRome,3\\nZagreb,1\\n')",
  "open('read.md', 'w').write('# A title\\n\\n![x](http://outside.invalid/x.png)\\n')",
  "open('a\\u202egpj.txt', 'w').write('hello there')",
].join('\n')

/** A file under the answer. */
const chip = (page, name) => page.locator('main').last().getByRole('button', { name }).first()

await check('previews: files of a workspace are looked at, and nothing from elsewhere is loaded', {}, async (page) => {
  await ask(page, `run: ${code}`)
  await answered(page, 'It ran.')
  await chip(page, /^numbers\.csv/).click()
  await page.getByRole('dialog').getByText('Zagreb').waitFor()
  await picture(page, 'preview-table')
  await page.keyboard.press('Escape')
  await chip(page, /^read\.md/).click()
  await page.getByRole('dialog').getByRole('heading', { name: 'A title' }).waitFor()
  await page.keyboard.press('Escape')
  await chip(page, /^agpj\.txt/).click()
  await page.getByRole('dialog').getByText('hello there').waitFor()
  await page.getByRole('button', { name: 'Ask about it' }).click()
  await page.waitForFunction(() => document.activeElement?.value?.includes('agpj.txt'))
})

await check(
  'an upload is taken back in its middle, and one that cannot come in pieces comes whole',
  {},
  async (page, context) => {
    const folder = mkdtempSync(join(tmpdir(), 'cove-page-'))
    try {
      writeFileSync(join(folder, 'large.bin'), Buffer.alloc(40 << 20))
      writeFileSync(join(folder, 'whole.bin'), Buffer.alloc(9 << 20))
      const sent = []
      page.on('request', (r) => sent.push(`${r.method()} ${new URL(r.url()).pathname}`))
      // So slow that there is a middle.
      const devtools = await context.newCDPSession(page)
      await devtools.send('Network.enable')
      const speed = (uploadThroughput) =>
        devtools.send('Network.emulateNetworkConditions', {
          offline: false,
          latency: 0,
          downloadThroughput: -1,
          uploadThroughput,
        })
      await speed(4 << 20)
      const files = page.locator('input[type=file]').first()
      await files.setInputFiles(join(folder, 'large.bin'))
      const piece = () => sent.find((r) => r.startsWith('PATCH ') && r.includes('/uploads/'))
      await until(() => piece(), 'the first piece')
      const upload = piece().slice('PATCH '.length)
      await page.getByRole('button', { name: 'Remove large.bin' }).click()
      await until(() => sent.includes(`DELETE ${upload}`), 'the upload given up')
      await until(async () => (await page.request.get(upload)).status() === 404, 'the upload gone')
      await speed(-1)
      const refused = (route) =>
        route.request().method() === 'POST'
          ? route.fulfill({
              status: 429,
              contentType: 'application/problem+json',
              body: JSON.stringify({ status: 429, code: 'too_many_uploads', detail: 'no more' }),
            })
          : route.fallback()
      await page.route('**/api/v1/uploads', refused)
      await files.setInputFiles(join(folder, 'whole.bin'))
      await until(() => sent.some((r) => /^POST .*\/api\/v1\/files$/.test(r)), 'the whole file')
      await ask(page, "run: import os\nprint('size', os.path.getsize('whole.bin'), os.path.exists('large.bin'))")
      await wrote(page, `size ${9 << 20} False`)
    } finally {
      rmSync(folder, { recursive: true })
    }
  },
)
