// What is between the page and its server: proxies, TLS, a network that goes away, a server that ends, a clock that is wrong.
import { randomFillSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { check, env, expect, order, picture, sleep, until } from '../kit.mjs'
import { answered, ask, composer, unfold, wrote } from '../people.mjs'

const mortal = { server: 'COVE_MORTAL' }

await check('below a path of a proxy', mortal, async (page, context) => {
  expect(new URL(page.url()).pathname === '/tools/cove/', page.url())
  await ask(page, "run: import plotly.express as px\nprint('below', 6 * 7)\npx.bar(x=['a', 'b'], y=[1, 2])")
  await wrote(page, 'below 42')
  await until(async () => page.frames().some((f) => f.url().includes('/tools/cove/frame')), 'the frame below the path')
  await page.reload()
  await answered(page, 'It ran.')
  expect(new URL(page.url()).pathname.startsWith('/tools/cove/c/'), page.url())
  await page.goto('settings')
  await page.getByRole('heading', { name: 'Settings' }).first().waitFor()
  expect((await context.cookies()).length === 1, 'there are other cookies than the one')
})

await check('with TLS', { server: 'COVE_SECURE' }, async (page, context) => {
  const [cookie] = await context.cookies()
  expect(cookie.name === '__Host-cove' && cookie.secure, `the cookie is ${JSON.stringify(cookie)}`)
  await ask(page, "run: print('by TLS', 6 * 7)")
  await wrote(page, 'by TLS 42')
})

await check('a clock that is a day behind, and one that is a day ahead', mortal, async (page) => {
  for (const days of [-1, 1]) {
    await page.clock.setSystemTime(Date.now() + days * 24 * 3600_000)
    await page.goto('./')
    await ask(page, `run: print('day', ${days})`)
    await wrote(page, `day ${days}`)
    await answered(page, 'It ran.')
    const text = await page.locator('body').innerText()
    expect(!/NaN|Invalid|-\d+ (s|min|h)\b/.test(text), text)
  }
})

await check(
  'half a minute without a network in the middle of output',
  { ...mortal, part: 'scale', down: true },
  async (page) => {
    await ask(page, "run: import time\nfor i in range(60):\n    print('tick', i, flush=True)\n    time.sleep(0.5)")
    await page.getByText('tick 3').first().waitFor()
    await order('hide')
    await page.getByText('Offline. What').first().waitFor()
    await sleep(25_000)
    await order('show')
    await answered(page, 'It ran.')
    await wrote(page, 'tick 59')
    // What has come may be folded, and fold once more at the end of the turn.
    let text = ''
    await until(async () => {
      const folded = page.getByRole('button', { name: /show all/ }).first()
      if (await folded.isVisible()) await folded.click({ timeout: 2000 }).catch(() => {})
      text = await page.locator('main').innerText()
      return /tick 0\b/.test(text) && /tick 59\b/.test(text)
    }, 'all of the output')
    for (let i = 0; i < 60; i++) {
      const n = text.split(new RegExp(`tick ${i}\\b`)).length - 1
      expect(n === 1, `tick ${i} is there ${n} times`)
    }
  },
)

await check(
  'a large file goes on where it was when the network was away',
  { ...mortal, down: true },
  async (page, context) => {
    const folder = mkdtempSync(join(tmpdir(), 'cove-page-'))
    const size = 40 << 20
    const offsets = []
    page.on('request', (r) => r.method() === 'PATCH' && offsets.push(Number(r.headers()['upload-offset'])))
    try {
      writeFileSync(join(folder, 'large.bin'), randomFillSync(Buffer.alloc(size)))
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
      await speed(8 << 20)
      await page.locator('input[type=file]').first().setInputFiles(join(folder, 'large.bin'))
      await until(() => offsets.length > 2, 'the third piece')
      await order('hide')
      await page.getByText('Offline. What').first().waitFor()
      const before = offsets.length
      await speed(-1)
      await order('show')
      await page.getByText('41.9 MB').first().waitFor()
      expect(offsets.length > before, 'nothing was sent after the break')
      expect(!offsets.slice(before).includes(0), `it began anew: ${offsets}`)
      const sent = offsets.reduce((sum, from) => sum + Math.min(8 << 20, size - from), 0)
      console.log(`    ${sent >> 20} MiB at most were sent of ${size >> 20}, from ${offsets.map((o) => o >> 20)}`)
      expect(sent < 2 * size, `${sent} bytes were sent: ${offsets}`)
      await ask(page, "run: import os\nprint('size', os.path.getsize('large.bin'))")
      await wrote(page, `size ${size}`)
      // Into a workspace, by way of the store, where nothing of it stays.
      await answered(page, 'It ran.')
      writeFileSync(join(folder, 'second.bin'), Buffer.alloc(9 << 20))
      await page.getByRole('button', { name: 'Files and session' }).click()
      const pieces = offsets.length
      await page.getByRole('complementary').locator('input[type=file]').setInputFiles(join(folder, 'second.bin'))
      await page.getByText('second.bin').waitFor()
      expect(offsets.length > pieces, 'it did not come in pieces')
      await until(async () => {
        const stored = await (await page.request.get('api/v1/files')).json()
        return !stored.items.some((f) => f.name === 'second.bin')
      }, 'the store without the file')
    } finally {
      rmSync(folder, { recursive: true })
    }
  },
)

for (const how of ['kill', 'stop'])
  await check(`a server that is begun again in a turn: ${how}`, { ...mortal, down: true }, async (page) => {
    await ask(page, "run: import time\nprint('begun', flush=True)\ntime.sleep(600)")
    await until(async () => /^begun$/m.test(await page.locator('body').innerText()), 'the output')
    await order(how)
    await page
      .getByText(/The server (restarted during this|is restarting)|the server is about to stop/)
      .first()
      .waitFor()
    await composer(page).waitFor()
    if (how === 'kill') {
      // It is told once: what happened, what is kept, and one button.
      await unfold(page)
      const text = await page.locator('main').innerText()
      for (const twice of ['cove ended', 'lost what was done', 'was lost when', '0.1 s'])
        expect(!text.includes(twice), `it is told again: ${text}`)
      expect(text.split('The server restarted').length === 2, text)
      const box = page.locator('main [role=alert]')
      expect((await box.count()) === 1 && (await box.getByRole('button').count()) === 1, await box.allInnerTexts())
      expect((await box.innerText()).includes('Partial output was kept.'), await box.innerText())
      await picture(page, 'lost')
      await box.getByRole('button', { name: 'Ask again' }).waitFor()
    }
    await ask(page, "run: print('and on', 6 * 7)")
    await wrote(page, 'and on 42')
  })

await check('a conversation of 1,000 turns', { ...mortal, part: 'scale' }, async (page) => {
  await page.goto(env('COVE_LONG'))
  await answered(page, 'question number 999')
  await page.getByRole('button', { name: 'Show 970 earlier questions' }).waitFor()
  const nodes = await page.evaluate(() => document.querySelectorAll('[data-turn] *').length)
  expect(nodes < 3000, `${nodes} nodes are in the turns that are drawn`)
  // Typing must not touch the turns, however many there are.
  await page.evaluate(() => {
    window.touched = 0
    const seen = new MutationObserver((list) => {
      window.touched += list.filter((m) =>
        (m.target.closest ?? m.target.parentElement?.closest)?.call(m.target, '[data-turn]'),
      ).length
    })
    seen.observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true })
  })
  await composer(page).pressSequentially('twenty letters typed')
  expect((await composer(page).inputValue()) === 'twenty letters typed', 'letters are missing')
  expect((await page.evaluate(() => window.touched)) === 0, 'typing changed turns')
})

await check('5,000 events a second', { ...mortal, part: 'scale' }, async (page, context) => {
  const devtools = await context.newCDPSession(page)
  const heap = async () => {
    await devtools.send('HeapProfiler.collectGarbage')
    return (await devtools.send('Runtime.getHeapUsage')).usedSize
  }
  await ask(page, "run: print('ready', 6 * 7)")
  await answered(page, 'It ran.')
  const before = await heap()
  // One render is one batch of changes; between two pictures there is to be one at most.
  await page.evaluate(() => {
    window.pictures = window.renders = 0
    const count = () => {
      window.pictures++
      requestAnimationFrame(count)
    }
    requestAnimationFrame(count)
    new MutationObserver((list) => {
      if (list.some((m) => m.type !== 'attributes')) window.renders++
    }).observe(document.querySelector('main'), { subtree: true, childList: true, characterData: true })
  })
  await ask(
    page,
    "run: import sys, time\nbegan = time.monotonic()\nfor i in range(50_000):\n    (sys.stdout, sys.stderr)[i % 2].write(f'event {i}\\n')\n    if i % 50 == 49:\n        time.sleep(max(0, began + i / 5000 - time.monotonic()))\nprint('all', 'told')",
  )
  await until(async () => (await page.locator('main').innerText()).includes('event '), 'the first output')
  // The page answers while that comes.
  const step = page.locator('[data-step]').last()
  await until(async () => {
    const was = await step.getAttribute('aria-expanded')
    await step.press('Enter') // a click waits until nothing moves; and a step that ends folds by itself, which can undo a press
    return (await step.getAttribute('aria-expanded')) !== was
  }, 'the step has folded or unfolded')
  await wrote(page, 'all told')
  const { frames, renders } = await page.evaluate(() => ({ frames: window.pictures, renders: window.renders }))
  expect(renders <= 1.2 * frames + 20, `${renders} renders in ${frames} frames`)
  const after = await heap()
  console.log(`    ${renders} renders in ${frames} frames; heap ${before >> 20} MB before, ${after >> 20} MB after`)
  // What is shown stays, some megabytes; the events themselves do not.
  expect(after < before * 1.2 + 12e6, `the heap was ${before} and is ${after}`)
})

await check('what the first screen loads', {}, async (page) => {
  // What is fetched after the first screen is there is for the next one.
  await page.addInitScript(() => {
    new MutationObserver((_, me) => {
      if (!document.querySelector('textarea, [contenteditable]')) return
      me.disconnect()
      window.shownAt = performance.now()
    }).observe(document, { childList: true, subtree: true })
  })
  await page.reload()
  await composer(page).waitFor()
  const files = await until(
    () =>
      page.evaluate(() => {
        const first = performance
          .getEntriesByType('resource')
          .filter((r) => r.name.includes('/assets/') && r.startTime <= window.shownAt)
        return window.shownAt && first.map((r) => [r.name.split('/').pop(), r.encodedBodySize])
      }),
    'the first screen',
  )
  const bytes = files.reduce((sum, [, size]) => sum + size, 0)
  console.log(`    ${(bytes / 1024).toFixed(0)} KiB in ${files.length} files`)
  expect(bytes > 0 && bytes <= 250 * 1024, `${bytes} bytes: ${JSON.stringify(files)}`)
})
