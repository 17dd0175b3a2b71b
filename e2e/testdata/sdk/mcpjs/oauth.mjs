// Has the protocol's TypeScript SDK find the authorization server of cove, register, get a token, and run code with it.
import assert from 'node:assert/strict'
import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

const url = new URL(process.env.COVE_TEST_URL)
const kept = {}
const came = []
const provider = {
  redirectUrl: 'http://127.0.0.1:1/callback',
  clientMetadata: { client_name: 'test', redirect_uris: ['http://127.0.0.1:1/callback'], token_endpoint_auth_method: 'none' },
  state: () => 'state',
  clientInformation: () => kept.client,
  saveClientInformation: (client) => { kept.client = client },
  tokens: () => kept.tokens,
  saveTokens: (tokens) => { kept.tokens = tokens },
  saveCodeVerifier: (verifier) => { kept.verifier = verifier },
  codeVerifier: () => kept.verifier,
  // The user's browser, and a user who agrees.
  redirectToAuthorization: async (address) => {
    const answer = await fetch(address, { redirect: 'manual' })
    assert.equal(answer.status, 302, await answer.text())
    came.push(new URL(answer.headers.get('location')))
  },
}
const transport = () => new StreamableHTTPClientTransport(url, { authProvider: provider })
const client = () => new Client({ name: 'test', version: '1.0.0' })

const first = transport()
await assert.rejects(client().connect(first), UnauthorizedError)
assert.equal(came[0].searchParams.get('state'), 'state')
await first.finishAuth(came[0].searchParams.get('code'))
const again = client()
await again.connect(transport())
const answer = await again.callTool({ name: 'python', arguments: { code: 'x = 6 * 7\nx' } })
assert.equal(answer.structuredContent.result, '42')
// A token that has expired is replaced without the user.
kept.tokens = { ...kept.tokens, access_token: process.env.COVE_TEST_EXPIRED }
const { session } = answer.structuredContent
assert.equal((await again.callTool({ name: 'python', arguments: { code: 'x + 1', session } })).structuredContent.result, '43')
assert.notEqual(kept.tokens.access_token, process.env.COVE_TEST_EXPIRED)
await again.callTool({ name: 'delete_session', arguments: { session } })
await again.close()
assert.equal(came.length, 1)
console.log('ok oauth (TypeScript)')
