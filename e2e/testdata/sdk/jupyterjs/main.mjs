// The library of JupyterLab and of VS Code uses a server's kernels, as both do: sessions, the binary protocol, the token in the query of the WebSocket.

import { createRequire } from 'node:module';

// The library is made for browsers.
globalThis.WebSocket ??= createRequire(import.meta.url)('ws');
const services = createRequire(import.meta.url)('@jupyterlab/services');

const url = process.env.COVE_TEST_URL, token = process.env.COVE_TEST_KEY;
const equal = (got, want) => {
  const [a, b] = [JSON.stringify(got), JSON.stringify(want)];
  if (a !== b) throw new Error(`${a} is not ${b}`);
};

const serverSettings = services.ServerConnection.makeSettings({
  baseUrl: url + '/', wsUrl: url.replace('http', 'ws') + '/', token, appendToken: true, fetch, Request, Headers, WebSocket: createRequire(import.meta.url)('ws'),
});
const specs = new services.KernelSpecManager({ serverSettings });
await specs.ready;
equal([specs.specs.default, Object.keys(specs.specs.kernelspecs)], ['python3', ['python3']]);
const kernelManager = new services.KernelManager({ serverSettings });
const sessions = new services.SessionManager({ serverSettings, kernelManager });
await sessions.ready;
const session = await sessions.startNew({ path: 'a.ipynb', name: 'a.ipynb', type: 'notebook', kernel: { name: 'python3' } });
const kernel = session.kernel;
equal((await kernel.info).language_info.name, 'python');

async function run(code, begun = () => {}) {
  const shown = [];
  const future = kernel.requestExecute({ code, stop_on_error: true });
  future.onIOPub = m => {
    const { msg_type: type } = m.header, c = m.content;
    if (type === 'stream') shown.push(c.text), begun();
    if (type === 'execute_result' || type === 'display_data') shown.push(c.data['text/plain']);
    if (type === 'error') shown.push(c.ename);
  };
  future.onStdin = () => kernel.sendInputReply({ value: 'Ann', status: 'ok' }, future.msg.header);
  const reply = await future.done;
  return [reply.content.status, reply.content.execution_count, ...shown];
}

equal(await run('x = 6\nprint("hello")\nx * 7'), ['ok', 1, 'hello\n', '42']);
equal(await run('1/0'), ['error', 2, 'ZeroDivisionError']);
equal(await run('input("who? ")'), ['ok', 3, "'Ann'"]);
equal((await kernel.requestComplete({ code: 'x.bit_l', cursor_pos: 7 })).content.matches, ['bit_length']);
// What the kernel is busy with may be the completion: the code itself says that it runs.
let slow;
await new Promise(begun => (slow = run('import time\nprint("begun", flush=True)\ntime.sleep(600)', begun)));
await kernel.interrupt();
equal((await slow).slice(-1), ['KeyboardInterrupt']);
await kernel.restart();
equal(await run('"x" in globals()'), ['ok', 1, 'False']);
await session.setPath('b.ipynb');
await sessions.refreshRunning();
equal([...sessions.running()].map(one => one.path), ['b.ipynb']);
await session.changeKernel({ name: 'python3' });
await session.shutdown();
await sessions.refreshRunning();
equal([...sessions.running()].length, 0);
console.log('ok @jupyterlab/services');
process.exit(0);
