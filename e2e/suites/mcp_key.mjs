// Passes requests on to a server with a key put in, for programs that cannot send one: node mcp_key.mjs PORT SERVER KEY.
// What a request says of its host and its origin stays.
import http from 'node:http'

const [port, server, key] = process.argv.slice(2)
http
  .createServer((request, response) => {
    const onward = http.request(
      new URL(request.url, server),
      { method: request.method, headers: { ...request.headers, authorization: `Bearer ${key}` } },
      (answer) => {
        response.writeHead(answer.statusCode, answer.headers)
        response.flushHeaders()
        answer.pipe(response)
      },
    )
    onward.on('error', () => response.destroy())
    response.on('close', () => onward.destroy())
    request.pipe(onward)
  })
  .listen(Number(port), '127.0.0.1')
