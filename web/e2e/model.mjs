// A scripted model: speaks OpenAI's chat completions, streams slowly, writes Python in a tool call, fails once, repairs it, draws a chart and answers.
//   node e2e/model.mjs 8712      then: OPENAI_BASE_URL=http://127.0.0.1:8712/v1 OPENAI_API_KEY=x cove serve
import { createServer } from 'node:http'

const port = Number(process.argv[2] ?? 8712)
const pace = Number(process.env.MODEL_PACE ?? 25)
const sleep = (ms) => new Promise((done) => setTimeout(done, ms))

const words = {
  en: {
    plan: 'I will read the file first, then compare the years by region.',
    repair: 'The column is called `revenue`. I will use that.',
    answer:
      '**Overseas grew fastest: +56 %** from 2024 to 2025.\n\n| Region | 2024 | 2025 | Growth |\n|---|---:|---:|---:|\n| Overseas | 106,923 | 167,165 | +56 % |\n| South | 117,305 | 138,535 | +18 % |\n| North | 132,640 | 144,980 | +9 % |\n| East | 81,542 | 78,964 | −3 % |\n\nThe chart shows both years side by side. The numbers are in `growth.csv`.',
    title: 'Revenue by region',
    read: '# Read the file',
    group: '# Compare the years by region',
    plot: '# Draw the growth',
  },
  zh: {
    plan: '先读文件，再按地区比较两年。',
    repair: '列名是 `revenue`，改用它。',
    answer:
      '**海外增长最快：+56 %**，从 2024 年到 2025 年。\n\n| 地区 | 2024 | 2025 | 增长 |\n|---|---:|---:|---:|\n| 海外 | 106,923 | 167,165 | +56 % |\n| 南部 | 117,305 | 138,535 | +18 % |\n| 北部 | 132,640 | 144,980 | +9 % |\n| 东部 | 81,542 | 78,964 | −3 % |\n\n图中并列显示两年。数字在 `growth.csv` 里。',
    title: '各地区收入',
    read: '# 读取文件',
    group: '# 按地区比较两年',
    plot: '# 画出增长',
  },
}

const codes = (w) => [
  `${w.read}\nimport pandas as pd\nimport time\ndf = pd.read_csv('sales.csv')\nfor i in range(4):\n    print('rows read:', (i + 1) * len(df) // 4)\n    time.sleep(0.4)\ndf.head()\n`,
  `${w.group}\ndf['year'] = pd.to_datetime(df['date']).dt.year\ng = df.groupby(['region', 'year'])['umsatz'].sum().unstack()\ng\n`,
  `${w.group}\ndf['year'] = pd.to_datetime(df['date']).dt.year\ng = df.groupby(['region', 'year'])['revenue'].sum().unstack()[[2024, 2025]]\ng.to_csv('growth.csv')\ng\n`,
  `${w.plot}\nimport matplotlib.pyplot as plt\nax = g.plot.bar(figsize=(8, 4), rot=0, color=['#8FA9DD', '#0F6B62'])\nax.set_title('${w.title}')\nax.set_xlabel('')\nplt.tight_layout()\nplt.show()\n`,
]

const textOf = (m) => (typeof m.content === 'string' ? m.content : (m.content ?? []).map((p) => p.text ?? '').join(''))

function script(body) {
  const last = body.messages.findLastIndex((m) => m.role === 'user')
  const question = textOf(body.messages[last])
  const lang = /\p{Script=Han}/u.test(question) ? 'zh' : 'en'
  const done = body.messages.slice(last).filter((m) => m.role === 'tool').length
  if (!body.tools?.length) return { text: words[lang].answer }
  if (/loop|循环/.test(question))
    return done
      ? { text: 'Stopped.' }
      : {
          text: '',
          code: '# Count for ever\nimport time\ni = 0\nwhile True:\n    i += 1\n    print(i)\n    time.sleep(0.5)\n',
        }
  if (/fail-model/.test(question)) return { status: 401 }
  if (!/region|地区|sales|chart|plot|month|product|月|产品|图/i.test(question)) {
    return done
      ? { text: lang === 'zh' ? '结果是 **42**。' : 'The result is **42**.' }
      : { text: '', code: 'answer = 6 * 7\nprint(answer)\nanswer\n' }
  }
  const w = words[lang]
  const all = codes(w)
  if (done >= all.length) return { text: w.answer }
  return { text: done === 0 ? w.plan : done === 2 ? w.repair : '', code: all[done] }
}

function* pieces(text, size) {
  for (let i = 0; i < text.length; i += size) yield text.slice(i, i + size)
}

createServer(async (req, res) => {
  let raw = ''
  for await (const part of req) raw += part
  if (req.url.endsWith('/models')) {
    res.setHeader('content-type', 'application/json')
    res.end(JSON.stringify({ object: 'list', data: [{ id: 'scripted', object: 'model' }] }))
    return
  }
  const body = JSON.parse(raw || '{}')
  const { text, code, status } = script(body)
  if (status) {
    res.writeHead(status, { 'content-type': 'application/json' })
    res.end(JSON.stringify({ error: { message: 'the key is not accepted', type: 'invalid_request_error' } }))
    return
  }
  res.setHeader('content-type', 'text/event-stream')
  const send = (delta, finish = null, usage) =>
    res.write(
      `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 0, model: body.model, choices: usage ? [] : [{ index: 0, delta, finish_reason: finish }], usage })}\n\n`,
    )
  send({ role: 'assistant', content: '' })
  await sleep(pace * 20)
  for (const p of pieces(text, 6)) {
    send({ content: p })
    await sleep(pace)
  }
  if (code) {
    const name = body.tools.find((t) => t.function.name === 'python')?.function.name ?? body.tools[0].function.name
    send({ tool_calls: [{ index: 0, id: `call_${Date.now()}`, type: 'function', function: { name, arguments: '' } }] })
    for (const p of pieces(JSON.stringify({ code }), 8)) {
      send({ tool_calls: [{ index: 0, function: { arguments: p } }] })
      await sleep(pace)
    }
  }
  send({}, code ? 'tool_calls' : 'stop')
  send(null, null, {
    prompt_tokens: Math.ceil(raw.length / 4),
    completion_tokens: Math.ceil((text.length + (code?.length ?? 0)) / 4),
    total_tokens: 0,
  })
  res.end('data: [DONE]\n\n')
}).listen(port, '127.0.0.1', () => console.log(`scripted model on ${port}`))
