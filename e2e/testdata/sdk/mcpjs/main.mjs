// Uses cove as a server of the Model Context Protocol with the protocol's TypeScript SDK.
import assert from 'node:assert/strict'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

const headers = { Authorization: `Bearer ${process.env.COVE_TEST_KEY}` }
const client = new Client({ name: 'test', version: '1.0.0' })
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
const gone = await client.callTool({ name: 'delete_session', arguments: { session } })
assert.ok(!gone.isError)
assert.ok(seen.includes('on its way'), String(seen))
await client.close()
console.log('ok mcp (TypeScript)')
