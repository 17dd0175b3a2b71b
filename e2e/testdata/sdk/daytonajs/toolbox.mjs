// Drives what a sandbox has by Daytona's own JavaScript library, as it is published, the way that programs for Daytona do.
import assert from 'node:assert/strict'
import { Daytona, DaytonaNotFoundError, DaytonaTimeoutError } from '@daytonaio/sdk'

const box = await new Daytona().create({ language: 'python', envVars: { ALL: 'everywhere' } })

const run = await box.process.codeRun("import sys\nimport matplotlib.pyplot as plt\nprint(sys.argv[1:])\nplt.plot([1, 2], [3, 4], label='l'); plt.show()", { argv: ['a b'] })
assert.equal(run.result, "['a b']\n")
assert.deepEqual(run.artifacts.charts.map((c) => [c.type, c.elements[0].label, c.elements[0].points, c.png.length > 0]), [['line', 'l', [[1, 3], [2, 4]], true]])
assert.equal((await box.process.executeCommand('echo out; echo err >&2; exit 3')).result, 'out\nerr\n')
await assert.rejects(box.process.executeCommand('sleep 600', undefined, undefined, 1), DaytonaTimeoutError)
console.log('ok code')

await box.process.createSession('s')
await box.process.executeSessionCommand('s', { command: 'cd /tmp' })
const first = await box.process.executeSessionCommand('s', { command: 'pwd; echo bad >&2' })
assert.deepEqual([first.exitCode, first.stdout, first.stderr], [0, '/tmp\n', 'bad\n'])
const later = await box.process.executeSessionCommand('s', { command: 'read x; echo "got $x"; echo end >&2', runAsync: true })
let out = '', err = ''
const followed = box.process.getSessionCommandLogs('s', later.cmdId, (text) => (out += text), (text) => (err += text))
for (let n = 0; ; n++) { // it takes input when it has begun
  try { await box.process.sendSessionCommandInput('s', later.cmdId, 'word'); break } catch (error) { if (n > 300) throw error }
  await new Promise((done) => setTimeout(done, 100))
}
await followed
assert.deepEqual([out, err], ['got word\n', 'end\n'])
await box.process.deleteSession('s')
await assert.rejects(box.process.getSession('s'), (error) => /session/.test(error.message))
console.log('ok sessions')

const context = await box.codeInterpreter.createContext('/tmp')
const ran = await box.codeInterpreter.runCode("import os\nprint(os.getcwd())\n1/0", { context, envs: { OWN: '1' } })
assert.deepEqual([ran.stdout, ran.error.name], ['/tmp\n', 'ZeroDivisionError'])
await assert.rejects(box.codeInterpreter.runCode('import time; time.sleep(600)', { context, timeout: 1 }), DaytonaTimeoutError)
await box.codeInterpreter.deleteContext(context)
console.log('ok interpreter')

const shell = await box.process.createPty({ id: 't', cols: 90, rows: 20, envs: { OWN: 'its own' }, onData: (data) => (out += Buffer.from(data).toString()) })
await shell.sendInput('stty size; echo "<$OWN>"; exit 5\n')
assert.equal((await shell.wait()).exitCode, 5)
assert.match(out, /20 90[\s\S]*<its own>/)
console.log('ok terminals')

const bytes = Buffer.alloc(2_000_000, 'abcdefg')
await box.fs.uploadFiles([{ source: bytes, destination: 'd/big' }, { source: Buffer.from('one\ntwo'), destination: 'd/t.txt' }])
assert.ok(bytes.equals(await box.fs.downloadFile('d/big')))
for (const name of ['数据.csv', 'é ü.txt', '😀.txt', 'a "b" c%41+.txt']) {
  await box.fs.uploadFile(Buffer.from(name), 'd/' + name)
  assert.equal((await box.fs.downloadFile('d/' + name)).toString(), name)
}
const got = await box.fs.downloadFiles([{ source: 'd/t.txt' }, { source: 'd/none' }])
assert.deepEqual([got[0].result.toString(), Boolean(got[1].error)], ['one\ntwo', true])
assert.deepEqual((await box.fs.findFiles('d', 'two')).map((m) => [m.file, m.line]), [['/home/user/d/t.txt', 2]])
await assert.rejects(box.fs.getFileDetails('d/none'), DaytonaNotFoundError)
console.log('ok files')

await box.process.executeCommand('git init -q -b main first')
await box.git.add('first', ['.']).catch(() => {})
await box.fs.uploadFile(Buffer.from('1'), 'first/a')
await box.git.add('first', ['a'])
const commit = await box.git.commit('first', 'one', 'Ada', 'ada@example.com')
assert.match(commit.sha, /^[0-9a-f]{40}$/)
await box.git.clone('/home/user/first', 'second')
assert.equal((await box.git.status('second')).currentBranch, 'main')
console.log('ok git')
await box.delete()
