// Anthropic's published client for JavaScript against a server: a stream of its code execution tool, and the files that come of it.

import assert from 'node:assert'
import Anthropic from '@anthropic-ai/sdk'

const client = new Anthropic({ maxRetries: 0 })
const request = (text) => ({
  model: 'claude-opus-4-6', max_tokens: 1024, messages: [{ role: 'user', content: text }], tools: [{ type: 'code_execution_20260120', name: 'code_execution' }],
})

const first = await client.messages.create(request('compute'))
assert.equal(first.content[1].content.stdout, '42\n')

const stream = client.messages.stream({ ...request('plot'), container: first.container.id })
let code = ''
stream.on('inputJson', (delta) => { code += delta })
const message = await stream.finalMessage()
assert.deepEqual(message.content.map((block) => block.type), ['server_tool_use', 'code_execution_tool_result', 'text'])
assert.equal(JSON.parse(code).code, message.content[0].input.code)
assert.equal(message.stop_reason, 'end_turn')
assert.equal(message.container.id, first.container.id)
const outputs = message.content[1].content.content
const names = await Promise.all(outputs.map(async (output) => (await client.beta.files.retrieveMetadata(output.file_id)).filename))
assert.deepEqual(names, ['figure_1.png', 'plot.txt'])
const download = await client.beta.files.download(outputs[1].file_id)
assert.equal(await download.text(), 'plotted')

// Code calls the client's tool by itself.
const callable = { name: 'get_weather', input_schema: { type: 'object', properties: { city: { type: 'string' } } }, allowed_callers: ['code_execution_20260120'] }
const messages = [{ role: 'user', content: 'heavens' }]
let said, rounds = 0
do {
  said = await client.messages.stream({ ...request(''), messages, tools: [...request('').tools, callable], container: said?.container.id }).finalMessage()
  const calls = said.content.filter((block) => block.type === 'tool_use')
  messages.push({ role: 'assistant', content: said.content },
    { role: 'user', content: calls.map((c) => ({ type: 'tool_result', tool_use_id: c.id, content: JSON.stringify({ sky: c.input.city }) })) })
  rounds++
} while (said.stop_reason === 'tool_use')
assert.equal(rounds, 3)
assert.equal(said.content[0].content.stdout, 'first\nRome Oslo Lima')

const shell = (content) => ({ ...request(content), tools: [{ type: 'code_execution_20250825', name: 'code_execution' }] })
const listed = client.messages.stream(shell('Please list all Python files'))
let command = ''
listed.on('inputJson', (delta) => { command += delta })
const listing = await listed.finalMessage()
assert.deepEqual(listing.content.map((block) => block.type), ['server_tool_use', 'bash_code_execution_tool_result', 'text'])
assert.equal(JSON.parse(command).command, listing.content[0].input.command)
assert.match(listing.content[1].content.stdout, /42\n$/)
const config = await client.messages.create(shell('Create a config.yaml file with database settings'))
assert.equal(config.content[1].content.is_file_update, false)
assert.equal(config.content[3].content.total_lines, 3)
const [file] = config.content[7].content.content
assert.equal((await client.beta.files.retrieveMetadata(file.file_id)).filename, 'config.yaml')

await assert.rejects(client.messages.create(request('limited')), (e) => e instanceof Anthropic.RateLimitError && e.error.error.type === 'rate_limit_error')
await assert.rejects(new Anthropic({ apiKey: 'wrong', maxRetries: 0 }).messages.create(request('compute')), Anthropic.AuthenticationError)
console.log('ok anthropic')
