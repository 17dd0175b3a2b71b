// Records the event streams of turns of a running server, for the tests of what is made of them (recorded.test.ts):
//   COVE_BASE=http://127.0.0.1:8700 COVE_KEY=cove_... node src/events/record.mjs
// The server's model must run the code after "run: " and then answer, and fail once at questions with "grew", as that of e2e/page_test.go does.
import { readFileSync, writeFileSync } from 'node:fs'

const base = `${process.env.COVE_BASE}/api/v1`
const headers = { Authorization: `Bearer ${process.env.COVE_KEY}` }

async function call(method, path, body) {
  const answer = await fetch(`${base}/${path}`, {
    method,
    headers: { ...headers, ...(body ? { 'Content-Type': 'application/json' } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
  return text ? JSON.parse(text) : null
}

/** Follows a turn to its end, calls back with each event, and returns all with their ids. */
async function follow(turn, onEvent = async () => {}) {
  const answer = await fetch(`${base}/turns/${turn}/events`, { headers: { ...headers, Accept: 'text/event-stream' } })
  if (!answer.ok) throw new Error(`events: ${answer.status} ${await answer.text()}`)
  const events = []
  let text = ''
  for await (const part of answer.body.pipeThrough(new TextDecoderStream())) {
    text += part
    const blocks = text.split('\n\n')
    text = blocks.pop()
    for (const block of blocks) {
      const id = Number(/^id: ?(\d+)/m.exec(block)?.[1] ?? 0)
      const data = [...block.matchAll(/^data: ?(.*)$/gm)].map((m) => m[1]).join('\n')
      if (!data) continue
      const event = JSON.parse(data)
      events.push({ id, event })
      await onEvent(event)
      if (event.type === 'answer' || event.type === 'failure') return events
    }
  }
  return events
}

const ask = (prompt, more = {}) => call('POST', 'turns?background=true', { prompt, ...more })
const keep = (name, events) =>
  writeFileSync(
    new URL(`recorded/${name}.jsonl`, import.meta.url),
    `${events.map((e) => JSON.stringify(e)).join('\n')}\n`,
  )

const plain = await ask("run: x = 6 * 7\nprint('x is', x)\nopen('x.txt', 'w').write('42')")
keep('plain', await follow(plain.id))

const sales = readFileSync(new URL('../../../examples/sales/sales.csv', import.meta.url), 'utf8')
  .split('\n')
  .slice(0, 40)
const sent = await fetch(`${base}/files?name=sales.csv`, {
  method: 'POST',
  headers: { ...headers, 'Content-Type': 'application/octet-stream' },
  body: sales.join('\n'),
})
if (!sent.ok) throw new Error(`files: ${sent.status} ${await sent.text()}`)
const repaired = await ask('Which region grew fastest?', { files: [(await sent.json()).id] })
keep('repaired', await follow(repaired.id))

const bar = await ask(
  'run: import time\nfrom tqdm import tqdm\nfor i in tqdm(range(4), ncols=50):\n    time.sleep(0.1)',
)
keep('tqdm', await follow(bar.id))

const table = await ask("run: import pandas as pd\npd.DataFrame({'city': ['Rome', 'Zagreb'], 'people': [3, 1]})")
keep('table', await follow(table.id))

const stopped = await ask("run: import time\nprint('begun', flush=True)\ntime.sleep(600)")
keep(
  'stopped',
  await follow(stopped.id, async (e) => {
    if (e.type === 'output' && e.event.type === 'stream') await call('POST', `turns/${stopped.id}/cancel`)
  }),
)

const lost = await ask("run: import os\nprint('begun', flush=True)\nos.kill(os.getpid(), 9)")
keep('lost', await follow(lost.id))

const waits = await ask("run: print('as it was written')", { approval: 'always' })
keep(
  'approval',
  await follow(waits.id, async (e) => {
    if (e.type === 'approval')
      await call('POST', `turns/${waits.id}/approve`, { step: e.step, run: true, code: "print('as it was changed')" })
  }),
)
