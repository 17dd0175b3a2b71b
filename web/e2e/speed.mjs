// How fast the page is in this machine's Chromium. Where a plain page shows the same text, the time of that stands beside: machines differ, ratios less.
// It needs what TestPage starts; `make page-speed` does that. Nothing is held to a time here.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { check, end, env, expect, sleep, until } from './kit.mjs'
import { answered, ask, composer, ended, settled, wrote } from './people.mjs'

const rows = []
const row = (what, got, plain = '') => rows.push([what, String(got), String(plain)])
const mortal = { server: 'COVE_MORTAL' }
const ms = (n) => `${Math.round(n)} ms`

/** The time from a blank page to one that shows so much text, without anything of ours. */
async function plainly(context, text) {
  const page = await context.newPage()
  const began = Date.now()
  await page.setContent(`<!doctype html><pre>${text.replace(/[<&]/g, ' ')}</pre>`)
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))))
  const took = Date.now() - began
  await page.close()
  return took
}

/** Notes long tasks and gaps between pictures, from now on. */
const watch = (page) =>
  page.evaluate(() => {
    window.seen = { task: 0, gap: 0, pictures: 0, renders: 0 }
    new PerformanceObserver((list) => {
      for (const e of list.getEntries()) window.seen.task = Math.max(window.seen.task, e.duration)
    }).observe({ type: 'longtask' })
    let last = performance.now()
    const next = (now) => {
      window.seen.pictures++
      window.seen.gap = Math.max(window.seen.gap, now - last)
      last = now
      requestAnimationFrame(next)
    }
    requestAnimationFrame(next)
    new MutationObserver(() => window.seen.renders++).observe(document.querySelector('main'), {
      subtree: true,
      childList: true,
      characterData: true,
    })
  })
const seen = (page) => page.evaluate(() => window.seen)

async function heap(page, context) {
  const devtools = await context.newCDPSession(page)
  await devtools.send('HeapProfiler.collectGarbage')
  return `${Math.round((await devtools.send('Runtime.getHeapUsage')).usedSize / 1e6)} MB`
}

const ticks = Number(execFileSync('getconf', ['CLK_TCK']))

/** The milliseconds of processor time that the server takes in the next minute. Those of its sandboxes, which are other processes, are not among them. */
async function busy() {
  const taken = () => {
    // After the name of the program, which may have blanks, come the state and, as the 12th and 13th, the time in its own code and in the system's.
    const fields = readFileSync(`/proc/${env('COVE_PID')}/stat`, 'utf8')
      .split(') ')
      .at(-1)
      .split(' ')
    return ((Number(fields[11]) + Number(fields[12])) * 1000) / ticks
  }
  const before = taken()
  await sleep(60_000)
  return taken() - before
}

await check('nobody does anything', {}, async (page) => {
  await ask(page, 'hello')
  await answered(page, 'You said: hello')
  const conversation = page.url()
  const requests = []
  page.on('request', (r) => requests.push(`${r.method()} ${new URL(r.url()).pathname}`))
  // Each twice, by turns: a server has work of its own now and then.
  const took = { none: 0, open: 0 }
  for (let i = 0; i < 2; i++) {
    await page.goto('about:blank')
    await sleep(10_000) // what is left to do of what went before, the page's stream among it, ends
    took.none += (await busy()) / 2
    await page.goto(conversation)
    await answered(page, 'You said: hello')
    await settled(page)
    await sleep(10_000)
    requests.length = 0
    took.open += (await busy()) / 2
    expect(!requests.length, `the page asks though nobody does anything: ${requests}`)
  }
  row('idle server, processor time a minute: without a page', ms(took.none))
  row('idle server, processor time a minute: with a page open', ms(took.open))
  row('idle server: ratio of these', took.none > 0 ? (took.open / took.none).toFixed(2) : 'none without a page')
})

await check('first load', {}, async (page, context) => {
  await page.reload()
  await composer(page).waitFor()
  const { files, paint } = await page.evaluate(() => ({
    files: performance.getEntriesByType('resource').map((r) => [new URL(r.name).pathname, r.encodedBodySize]),
    paint: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0,
  }))
  const assets = files.filter(([name]) => name.includes('/assets/'))
  for (const [name, size] of assets) row(`  ${name}`, `${(size / 1024).toFixed(1)} KiB`)
  row('first load, sum', `${(assets.reduce((sum, [, size]) => sum + size, 0) / 1024).toFixed(0)} KiB`)
  row('first paint', ms(paint), ms(await plainly(context, await page.locator('body').innerText())))
})

await check('1,000 turns', mortal, async (page, context) => {
  const began = Date.now()
  await page.goto(env('COVE_LONG'))
  await answered(page, 'question number 999')
  row('1,000 turns: opened', ms(Date.now() - began), ms(await plainly(context, await page.locator('body').innerText())))
  row('1,000 turns: nodes', await page.evaluate(() => document.querySelectorAll('[data-turn] *').length))
  await watch(page)
  await composer(page).pressSequentially('twenty letters typed')
  row('1,000 turns: longest task over 50 ms while typing', ms((await seen(page)).task))
})

await check('a table of 100,000 rows', {}, async (page) => {
  await ask(
    page,
    'run: import numpy as np, pandas as pd\ndf = pd.DataFrame(np.arange(2_000_000).reshape(100_000, 20)).add_prefix("c")\ndf',
  )
  await answered(page, 'It ran.')
  await ended(page)
  const grid = page.getByRole('grid').first()
  const step = page.locator('[data-step][aria-expanded="false"]').last()
  const began = Date.now()
  if (!(await grid.count())) await step.click()
  await grid.waitFor()
  row('table: shown', ms(Date.now() - began))
  await watch(page)
  const box = await grid.boundingBox()
  await page.mouse.move(box.x + 60, box.y + 60)
  for (let i = 0; i < 40; i++) await page.mouse.wheel(0, 2000)
  const got = await seen(page)
  row('table: longest gap between pictures while scrolling', ms(got.gap))
})

await check('10 MB of output', {}, async (page, context) => {
  await watch(page)
  const began = Date.now()
  await ask(page, "run: for i in range(100_000):\n    print(f'{i:099d}')\nprint('all', 'told')")
  await answered(page, 'It ran.')
  const took = Date.now() - began
  row('10 MB: done', ms(took), ms(await plainly(context, `${'0'.repeat(99)}\n`.repeat(100_000))))
  row('10 MB: longest gap between pictures', ms((await seen(page)).gap))
})

await check('5,000 events a second', {}, async (page, context) => {
  await ask(page, "run: print('ready', 6 * 7)")
  await answered(page, 'It ran.')
  row('events: heap before', await heap(page, context))
  await watch(page)
  await ask(
    page,
    "run: import sys, time\nbegan = time.monotonic()\nfor i in range(50_000):\n    (sys.stdout, sys.stderr)[i % 2].write(f'event {i}\\n')\n    if i % 50 == 49:\n        time.sleep(max(0, began + i / 5000 - time.monotonic()))\nprint('all', 'told')",
  )
  await wrote(page, 'all told')
  const got = await seen(page)
  row('events: renders per picture', (got.renders / got.pictures).toFixed(2))
  row('events: longest gap between pictures', ms(got.gap))
  row('events: heap after', await heap(page, context))
})

await check('print to pixel', {}, async (page) => {
  await page.evaluate(() => {
    window.late = []
    window.told = new Set()
    const look = () => {
      const now = Date.now()
      for (const [text, at] of (document.querySelector('main')?.innerText ?? '').matchAll(/stamp (\d{13})/g))
        if (!window.told.has(text)) {
          window.told.add(text)
          window.late.push(now - Number(at))
        }
      requestAnimationFrame(look)
    }
    requestAnimationFrame(look)
  })
  await ask(
    page,
    "run: import time\nfor i in range(60):\n    print('stamp', time.time_ns() // 1_000_000, flush=True)\n    time.sleep(0.2)",
  )
  await answered(page, 'It ran.')
  const late = await until(() => page.evaluate(() => window.late.length > 20 && window.late), 'the stamps')
  late.sort((a, b) => a - b)
  const at = (part) => ms(late[Math.floor((late.length - 1) * part)])
  row('print to pixel, p50 and p95', `${at(0.5)}, ${at(0.95)} (${late.length} times)`)
})

const width = Math.max(...rows.map(([what]) => what.length))
console.log(`${''.padEnd(width)}  ${'cove'.padEnd(22)}  a plain page`)
for (const [what, got, plain] of rows) console.log(`${what.padEnd(width)}  ${got.padEnd(22)}  ${plain}`)
await end()
