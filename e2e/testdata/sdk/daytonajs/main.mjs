// Drives a server by Daytona's own JavaScript library, as it is published, the way that programs for Daytona do.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { Daytona, DaytonaNotFoundError, Image } from '@daytonaio/sdk'

const daytona = new Daytona()
const box = await daytona.create({ language: 'javascript', envVars: { ALL: 'everywhere' }, labels: { team: 'js' } })
assert.equal(box.state, 'started')
assert.equal((await box.process.codeRun('console.log(6 * 7, process.env.ALL)')).result, '42 everywhere\n')
const lines = []
await box.codeInterpreter.runCode('kept = 5\nprint(kept)', { onStdout: (m) => lines.push(m.output) })
assert.equal((await box.codeInterpreter.runCode('print(kept + 1)')).stdout, '6\n')
assert.equal(lines.join(''), '5\n')
console.log('ok code')

const done = await box.process.executeCommand('echo $ALL; exit 3')
assert.deepEqual([done.result, done.exitCode], ['everywhere\n', 3])
const shell = await box.process.createPty({ id: 'shell', cols: 80, rows: 24, onData: (data) => lines.push(Buffer.from(data).toString()) })
await shell.waitForConnection()
await shell.sendInput('echo $((6 * 8)); exit 4\n')
assert.equal((await shell.wait()).exitCode, 4)
assert.match(lines.join(''), /48/)
console.log('ok commands')

await box.fs.uploadFile(Buffer.from('text'), 'a/b.txt')
assert.equal((await box.fs.downloadFile('a/b.txt')).toString(), 'text')
assert.deepEqual((await box.fs.listFiles('a')).map((e) => e.name), ['b.txt'])
await box.fs.setFilePermissions('a/b.txt', { mode: '600', owner: 'daytona', group: 'daytona' })
assert.equal((await box.fs.getFileDetails('a/b.txt')).permissions, '0600')
const url = await box.downloadUrl('a/b.txt')
assert.equal(await (await fetch(url)).text(), 'text')
console.log('ok files')

const found = []
for await (const one of daytona.list({ labels: { team: 'js' } })) found.push(one.id)
assert.deepEqual(found, [box.id])
await box.setLabels({ team: 'c' })
await box.stop()
assert.equal(box.state, 'stopped')
await assert.rejects(box.process.executeCommand('true'), /stopped/)
await box.start()
assert.equal((await box.fs.downloadFile('a/b.txt')).toString(), 'text')
await box.delete()
await assert.rejects(daytona.get(box.id), DaytonaNotFoundError)
console.log('ok lives')

// A large file comes in parts.
const here = fs.mkdtempSync(path.join(os.tmpdir(), 'cove-'))
fs.mkdirSync(path.join(here, 'folder', 'in'), { recursive: true })
fs.writeFileSync(path.join(here, 'folder', 'in', 'a.txt'), 'a text')
fs.writeFileSync(path.join(here, 'large'), randomBytes(12 << 20))
const image = Image.base('python:3.12').addLocalDir(path.join(here, 'folder'), '/home/user/folder').addLocalFile(path.join(here, 'large'), '/home/user/large')
for (let n = 0; n < 2; n++) {
  const log = []
  const built = await daytona.create({ image: image.runCommands(`echo ${n}; sha256sum large > sum`) }, { onSnapshotCreateLogs: (line) => log.push(line), timeout: 0 })
  const sum = (await built.process.executeCommand('cat folder/in/a.txt; cat sum; sha256sum large')).result.split('\n')
  assert.ok(sum[0].startsWith('a text') && sum[0].slice(6) === sum[1], sum)
  assert.match(log.join('\n'), /COPY/)
  await built.delete()
}
fs.rmSync(here, { recursive: true })
console.log('ok images')
process.exit(0) // its library keeps looking for events
