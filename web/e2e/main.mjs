// What people do with the page, in a real browser, against real servers with gVisor. The server at COVE_BASE has a scripted model, the one at COVE_ALONE has none,
// COVE_MORTAL is a server that COVE_CONTROL can kill, stop and hide, seen through proxies below a path (COVE_MORTAL) and with TLS (COVE_SECURE).
// Every check ends with: nothing asked of another host, no error, nothing refused by the page's own policy.
import { end } from './kit.mjs'

// Much of a check is waiting: two lanes go side by side. What is in one lane is done in order.
const lane = async (...names) => {
  for (const name of names) await import(`./checks/${name}.mjs`)
}
await Promise.all([
  lane('signin', 'problems', 'people', 'asking', 'steps', 'streams', 'outputs', 'charts', 'keyboard', 'chinese'),
  lane(
    'worlds',
    'queue',
    'tries',
    'ratings',
    'data',
    'tables',
    'lists',
    'suggestions',
    'print',
    'notebooks',
    'approval',
    'input',
    'previews',
    'findings',
    'screens',
    'widgets',
  ),
])
await end()
