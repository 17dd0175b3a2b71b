// Uses cove as a server of the Model Context Protocol with the protocol's TypeScript SDK.
import assert from 'node:assert/strict'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'

const headers = { Authorization: `Bearer ${process.env.COVE_TEST_KEY}` }
const client = new Client({ name: 'test', version: '1.0.0' }, { capabilities: { elicitation: {} } })
const questions = []
client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
  questions.push(params.message)
  return questions.length === 1 ? { action: 'accept', content: { value: 'Ada' } } : { action: 'decline' }
})
await client.connect(new StreamableHTTPClientTransport(new URL(process.env.COVE_TEST_URL), { requestInit: { headers } }))
assert.equal(client.getServerVersion().name, 'cove')

const { tools } = await client.listTools()
assert.equal(tools.length, 7)
const seen = []
const first = await client.callTool({ name: 'python', arguments: { code: "x = 20\nprint('on its way', flush=True)\nopen('out.txt', 'w').write('words')\nx + 1" } }, undefined, {
  onprogress: ({ message }) => seen.push(message),
})
assert.equal(first.structuredContent.result, '21')
const { session } = first.structuredContent
const again = await client.callTool({ name: 'python', arguments: { code: 'print(x)', session } })
assert.equal(again.content[0].text, '20\n')
const wrong = await client.callTool({ name: 'python', arguments: { code: '1 / 0', session } })
assert.ok(wrong.isError && wrong.content[0].text.includes('ZeroDivisionError'))
const read = await client.readResource({ uri: first.content.find((part) => part.type === 'resource_link').uri })
assert.equal(read.contents[0].text, 'words')
const call = async (name, args) => {
  const answer = await client.callTool({ name, arguments: { session, ...args } })
  assert.ok(!answer.isError, JSON.stringify(answer))
  return answer.content[0].text
}
assert.match(await call('write_file', { path: 'in/a.txt', text: 'größe' }), /wrote in\/a.txt/)
assert.equal(await call('read_file', { path: 'in/a.txt' }), 'größe')
assert.match(await call('list_files', { path: 'in' }), /in\/a.txt \(7 bytes\)/)
assert.ok(await call('install_packages', { packages: ['numpy'] }))
assert.ok((await client.callTool({ name: 'list_sessions', arguments: {} })).content[0].text.includes(session))
assert.equal(await call('python', { code: "print('Hello', input('Your name? '))" }), 'Hello Ada\n')
assert.match(await call('python', { code: "try:\n    input()\nexcept EOFError:\n    print('nothing')" }), /^nothing/)
assert.match(questions[0], /Your name\?/)
assert.equal(questions.length, 2)
const gone = await client.callTool({ name: 'delete_session', arguments: { session } })
assert.ok(!gone.isError)
assert.ok(seen.includes('on its way'), String(seen))
await client.close()
console.log('ok mcp (TypeScript)')
