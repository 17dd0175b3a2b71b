// Drives a server by E2B's own JavaScript library, as it is published, the way that programs for E2B do.
import assert from 'node:assert/strict'
import { CommandExitError, NotFoundError, Sandbox } from '@e2b/code-interpreter'

const box = await Sandbox.create({ timeoutMs: 600_000, envs: { ALL: 'everywhere' }, metadata: { who: 'a & b' } })
const lines = []
const run = await box.runCode("x = 20\nprint('é 中')\nx + 1", { onStdout: (m) => lines.push(m.line) })
assert.deepEqual([run.text, lines.join(''), run.executionCount], ['21', 'é 中\n', 1])
assert.equal((await box.runCode('1/0')).error.name, 'ZeroDivisionError')
const chart = (await box.runCode("import matplotlib.pyplot as plt\nplt.plot([1, 2], [3, 4.5])\nplt.show()")).results[0]
assert.deepEqual([chart.chart.type, chart.chart.elements[0].points, chart.png.length > 100], ['line', [[1, 3], [2, 4.5]], true])
console.log('ok code')

const done = await box.commands.run('echo $ALL; echo err >&2')
assert.deepEqual([done.stdout, done.stderr, done.exitCode], ['everywhere\n', 'err\n', 0])
await assert.rejects(box.commands.run('exit 3'), (e) => e instanceof CommandExitError && e.exitCode === 3)
const shell = await box.pty.create({ cols: 80, rows: 24, onData: (data) => lines.push(Buffer.from(data).toString()) })
await box.pty.sendInput(shell.pid, Buffer.from('echo $((6 * 7)); exit\n'))
await shell.wait()
assert.match(lines.join(''), /42/)
console.log('ok commands')

await box.files.write('a/b.txt', 'text')
assert.equal(await box.files.read('a/b.txt'), 'text')
assert.deepEqual((await box.files.list('a')).map((e) => [e.name, e.type]), [['b.txt', 'file']])
await assert.rejects(box.files.read('nothing'), NotFoundError)
let found
const seen = new Promise((resolve) => (found = resolve))
const watch = await box.files.watchDir('a', (e) => e.name === 'made' && found(e))
await box.commands.run('touch a/made')
await seen
await watch.stop()
const url = await box.downloadUrl('a/b.txt')
assert.equal(await (await fetch(url)).text(), 'text')
const form = new FormData()
form.append('file', new Blob(['sent']), 'sent.txt')
assert.equal((await fetch(await box.uploadUrl('sent.txt'), { method: 'POST', body: form })).status, 200)
assert.equal(await box.files.read('sent.txt'), 'sent')
console.log('ok files')

await box.runCode('kept = 7')
assert.equal(await box.pause(), true)
assert.equal(await box.isRunning(), false)
const again = await Sandbox.connect(box.sandboxId)
assert.equal((await again.runCode('kept')).text, '7')
const running = again.commands.run('sleep 600', { timeoutMs: 0 })
const ended = assert.rejects(running)
await new Promise((resolve) => setTimeout(resolve, 500))
assert.equal(await again.kill(), true)
await ended
assert.equal(await Sandbox.kill(again.sandboxId), false)
await assert.rejects(Sandbox.connect(again.sandboxId), NotFoundError)
console.log('ok lives')
