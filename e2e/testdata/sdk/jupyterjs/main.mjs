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


// Files and terminals, as JupyterLab uses them.
const contents = new services.ContentsManager({ serverSettings });
await contents.save('data/a.csv', { type: 'file', format: 'text', content: 'a,b\n1,2\n' });
const untitled = await contents.newUntitled({ path: 'data', type: 'notebook' });
equal([untitled.path, (await contents.get('data')).content.map(one => one.name).sort()], ['data/Untitled.ipynb', ['Untitled.ipynb', 'a.csv']]);
equal((await contents.rename(untitled.path, 'data/b.ipynb')).path, 'data/b.ipynb');
const checkpoint = await contents.createCheckpoint('data/a.csv');
await contents.save('data/a.csv', { type: 'file', format: 'text', content: 'other' });
await contents.restoreCheckpoint('data/a.csv', checkpoint.id);
const got = await contents.get('data/a.csv', { content: true, hash: true });
equal([got.content, got.format, got.hash_algorithm, got.hash.length], ['a,b\n1,2\n', 'text', 'sha256', 64]);
const download = await fetch(await contents.getDownloadUrl('data/a.csv'), { headers: { authorization: `token ${token}` } });
equal([download.status, await download.text(), download.headers.get('content-disposition')], [200, 'a,b\n1,2\n', 'attachment; filename=a.csv']);
const chunk = n => Buffer.alloc(1 << 20, n);
for (const [n, at] of [[1, 1], [2, 2], [3, -1]]) await contents.save('data/big.bin', { type: 'file', format: 'base64', chunk: at, content: chunk(n).toString('base64') });
const big = await contents.get('data/big.bin', { type: 'file', format: 'base64', content: true });
if (Buffer.compare(Buffer.from(big.content, 'base64'), Buffer.concat([1, 2, 3].map(chunk)))) throw new Error('the file in chunks is another one');
// The kernel of a document is beside it.
const beside = await sessions.startNew({ path: 'data/b.ipynb', name: 'b.ipynb', type: 'notebook', kernel: { name: 'python3' } });
const future = beside.kernel.requestExecute({ code: 'print(open("a.csv").read().split()[1])' });
let read = '';
future.onIOPub = m => { if (m.header.msg_type === 'stream') read += m.content.text; };
await future.done;
equal(read, '1,2\n');
await beside.shutdown();
createRequire(import.meta.url)('@jupyterlab/coreutils').PageConfig.setOption('terminalsAvailable', 'true'); // what a page of JupyterLab says of its server
const terminals = new services.TerminalManager({ serverSettings });
const terminal = await terminals.startNew({ cwd: 'data' });
let screen = '';
const seen = new Promise(found => terminal.messageReceived.connect((_, m) => { if (m.type === 'stdout' && (screen += m.content[0]).includes('size 33 111 a.csv b.ipynb big.bin')) found(); }));
terminal.send({ type: 'set_size', content: [33, 111, 1, 1] });
terminal.send({ type: 'stdin', content: ['echo size $(stty size) $(ls)\r'] });
await seen;
await terminals.refreshRunning();
equal([...terminals.running()].map(one => one.name), [terminal.name]);
await terminal.shutdown();
await terminals.refreshRunning();
equal([...terminals.running()].length, 0);
await contents.delete('data');
console.log('ok files and terminals');
process.exit(0);
