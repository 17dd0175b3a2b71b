// JupyterLab and Notebook 7 in a browser against a server of cove's: first with cove as their gateway, then JupyterLab with cove's files and terminals, too.
import { spawn } from 'node:child_process'
import fs from 'node:fs'
import http from 'node:http'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { chromium } from 'playwright-core'

const { COVE_TEST_URL: cove, COVE_TEST_KEY: key, CHROMIUM, COVE_JUPYTER_PYTHON: python, COVE_PICTURES: pictures } = process.env
const patience = Number(process.env.COVE_PATIENCE || 180_000) // milliseconds: machines that run tests are busy
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cove-lab-'))
const faults = []
let picture = 0

const cell = (source) => ({ cell_type: 'code', id: Math.random().toString(36).slice(2, 10), execution_count: null, metadata: {}, outputs: [], source })
const notebook = (...sources) => ({
  cells: sources.map(cell),
  metadata: { kernelspec: { name: 'python3', display_name: 'Python 3 (cove)', language: 'python' } },
  nbformat: 4,
  nbformat_minor: 5,
})

function need(so, what) {
  if (!so) throw new Error(what)
}

/** Starts JupyterLab with cove as its gateway, and returns its address. */
async function lab() {
  const token = 'labtoken'
  const child = spawn(
    python,
    ['-m', 'jupyterlab', '--no-browser', '--allow-root', '--ip=127.0.0.1', '--port=0', `--IdentityProvider.token=${token}`, `--ServerApp.root_dir=${folder}`,
      `--gateway-url=${cove}`, '--LabApp.expose_app_in_browser=True', '--JupyterNotebookApp.expose_app_in_browser=True', '--LabApp.news_url=None', '--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate'],
    { env: { ...process.env, JUPYTER_GATEWAY_AUTH_TOKEN: key }, stdio: ['ignore', 'inherit', 'pipe'] },
  )
  process.on('exit', () => child.kill('SIGKILL'))
  let said = ''
  return new Promise((resolve, reject) => {
    child.on('exit', (code) => reject(new Error(`JupyterLab ended with ${code}: ${said}`)))
    child.stderr.on('data', (text) => {
      said = (said + text).slice(-20_000)
      const found = /http:\/\/127\.0\.0\.1:(\d+)\/lab\?token/.exec(said)
      if (found) resolve({ port: Number(found[1]), token })
    })
  })
}

/** A server that has JupyterLab's pages and settings from JupyterLab, and all else from cove: kernels, files, terminals. */
async function front({ port, token }) {
  const to = new URL(cove)
  const target = (url) =>
    /^\/(api|terminals|files)\b/.test(url)
      ? { host: to.hostname, port: to.port, path: to.pathname + url, headers: { authorization: `token ${key}` } }
      : { host: '127.0.0.1', port, path: url, headers: { authorization: `token ${token}` } }
  const server = http.createServer((request, response) => {
    const at = target(request.url)
    const { origin, referer, cookie, ...kept } = request.headers
    const up = http.request({ ...at, method: request.method, headers: { ...kept, ...at.headers, host: `${at.host}:${at.port}` } }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers)
      answer.pipe(response)
    })
    up.on('error', () => response.destroy())
    request.pipe(up)
  })
  server.on('upgrade', (request, socket, head) => {
    const at = target(request.url)
    const up = net.connect(at.port, at.host, () => {
      const { origin, cookie, ...kept } = request.headers
      const lines = Object.entries({ ...kept, ...at.headers, host: `${at.host}:${at.port}` }).map(([name, value]) => `${name}: ${value}`)
      up.write(`GET ${at.path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`)
      up.write(head)
      up.pipe(socket).pipe(up)
    })
    up.on('error', () => socket.destroy())
    socket.on('error', () => up.destroy())
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  server.unref()
  return `http://127.0.0.1:${server.address().port}`
}

const browser = await chromium.launch({ executablePath: CHROMIUM, args: [...(process.getuid() === 0 ? ['--no-sandbox'] : []), '--disable-dev-shm-usage'] })

/** Opens a page of JupyterLab, or of Notebook 7. */
async function open(address) {
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage()
  page.setDefaultTimeout(patience)
  // Those of Notebook 7 have errors of their own, with its own kernels, too.
  // What JupyterLab says when it leaves a connection to a kernel before the kernel has answered its first question is no news either: a busy machine is slow to answer.
  const itsOwn = 'Canceled future for kernel_info_request message before replies were done'
  if (address.includes('/lab/')) page.on('pageerror', (error) => error.message.includes(itsOwn) || faults.push(`an error in the page: ${error.message}`))
  await page.goto(address)
  await page.waitForFunction(() => window.jupyterapp?.shell.currentWidget?.sessionContext)
  return page
}

async function shoot(page, name) {
  if (pictures) await page.screenshot({ path: path.join(pictures, `lab-${++picture}-${name}.png`) })
}

const outputs = (page, n) => page.locator('.jp-Notebook .jp-Cell').nth(n).locator('.jp-Cell-outputArea')
const command = (page, id) => page.evaluate((id) => window.jupyterapp.commands.execute(id), id)

/** Runs a cell as people do, with Shift and Enter. */
async function run(page, n) {
  await page.locator('.jp-Notebook .jp-Cell').nth(n).locator('.cm-content').click()
  await page.keyboard.press('Shift+Enter')
}

async function idle(page, timeout) {
  await page.waitForFunction(() => {
    const context = window.jupyterapp?.shell.currentWidget?.sessionContext
    return context?.isReady && context.session?.kernel?.connectionStatus === 'connected' && context.kernelDisplayStatus === 'idle'
  }, undefined, timeout && { timeout })
}

/** Waits for the kernel of a page that was opened. Jupyter Server's client of a gateway drops what comes before it has begun to connect (GatewayWebSocketClient._write_message), as the browser's first question about the kernel
 * on a busy machine; then people load the page once more, and so does this. */
async function opened(page) {
  await idle(page, 60_000).catch(async () => {
    await page.reload()
    await page.locator('.jp-Notebook .jp-Cell').first().waitFor()
    await idle(page)
  })
}

/** What people do with a notebook: run, plot, interrupt, restart. */
async function mainPath(page, name) {
  await page.locator('.jp-Notebook .jp-Cell').first().waitFor()
  await opened(page)
  await run(page, 0)
  await outputs(page, 0).getByText('six times seven is 42').waitFor()
  await run(page, 1)
  await outputs(page, 1).locator('img').waitFor()
  const width = await outputs(page, 1).locator('img').evaluate(async (img) => (await img.decode(), img.naturalWidth))
  need(width > 100, `the plot is ${width} wide`)
  await run(page, 2)
  await outputs(page, 2).getByText('it begins').waitFor()
  await page.locator('[data-command="notebook:interrupt-kernel"]').first().click()
  await outputs(page, 2).getByText('KeyboardInterrupt').first().waitFor()
  await shoot(page, `${name}-notebook`)
  await page.locator('[data-command="notebook:restart-kernel"]').first().click()
  await page.locator('.jp-Dialog .jp-mod-accept').click()
  await page.locator('.jp-Dialog').waitFor({ state: 'detached' })
  await idle(page)
  await run(page, 3)
  await outputs(page, 3).getByText('x is gone').waitFor()
  console.log(`ok ${name}: run, plot, interrupt, restart`)
}

const cells = [
  'x = 6\nprint("six times seven is", x * 7)',
  'import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.show()',
  'import time\nprint("it begins")\ntime.sleep(3600)',
  'print("x is", "there" if "x" in globals() else "gone")',
]

async function gateway(started, at, name) {
  const file = name.replaceAll(' ', '-') + '.ipynb'
  fs.writeFileSync(path.join(folder, file), JSON.stringify(notebook(...cells)))
  const page = await open(`http://127.0.0.1:${started.port}/${at}/${file}?token=${started.token}&reset`)
  await mainPath(page, name)
  await command(page, 'docmanager:save')
  await command(page, 'kernelmenu:shutdown')
  await page.context().close()
}

const call = async (method, at, body) => {
  const answer = await fetch(`${cove}/api/${at}`, { method, headers: { authorization: `token ${key}` }, body: body && JSON.stringify(body) })
  need(answer.ok, `${method} ${at}: ${answer.status} ${await answer.clone().text()}`)
  return answer.status === 204 ? null : answer.json()
}

/** Files, kernels beside them, widgets and a terminal, all of cove's. */
async function whole(started) {
  await call('PUT', 'contents/data.csv', { type: 'file', format: 'text', content: 'a,b\n1,2\n' })
  await call('PUT', 'contents/widgets.zip', { type: 'file', format: 'base64', content: fs.readFileSync(process.env.COVE_WIDGETS).toString('base64') })
  const more = [
    'print(open("data.csv").read())',
    'import sys\nsys.path.insert(0, "widgets.zip")\nimport ipywidgets as w\nfrom IPython.display import display\nslider, out, said = w.IntSlider(description="size"), w.Output(), w.Label()\n' +
      '@out.capture()\ndef moved(change):\n    print("it was moved to", change.new)\nslider.observe(moved, "value")\nw.jslink((slider, "value"), (said, "value"))\ndisplay(slider, out)',
    'slider.value',
  ]
  await call('PUT', 'contents/theirs.ipynb', { type: 'notebook', format: 'json', content: notebook(...cells, ...more) })
  const address = await front(started)
  const page = await open(`${address}/lab/tree/theirs.ipynb?reset`)
  await mainPath(page, 'with files')
  await run(page, 4)
  await outputs(page, 4).getByText('a,b').waitFor()
  await run(page, 5)
  const slider = outputs(page, 5).locator('.widget-slider .noUi-handle')
  await slider.waitFor()
  await slider.focus()
  await page.keyboard.press('ArrowRight')
  await outputs(page, 5).getByText('it was moved to 1').waitFor()
  await run(page, 6)
  await outputs(page, 6).getByText('1').first().waitFor()
  await shoot(page, 'widgets')
  await command(page, 'docmanager:save')
  await terminal(page)
  await command(page, 'filebrowser:activate')
  await page.locator('.jp-DirListing-item', { hasText: 'made-in-a-terminal' }).waitFor()
  await shoot(page, 'files')
  await page.context().close()
  const saved = await call('GET', 'contents/theirs.ipynb?content=1')
  need(JSON.stringify(saved.content.cells[0].outputs).includes('six times seven is 42'), 'the notebook was not saved with its outputs')
  console.log('ok files, widgets and a terminal')
}

async function terminal(page) {
  await command(page, 'terminal:create-new')
  const screen = page.locator('.jp-Terminal')
  await screen.waitFor()
  await screen.click()
  await page.waitForFunction(() => document.querySelector('.jp-Terminal .xterm-helper-textarea'))
  await page.keyboard.type('touch made-in-a-terminal-$((40+2)).txt; ls\n')
  await shoot(page, 'terminal')
}

try {
  const started = await lab()
  await gateway(started, 'lab/tree', 'a gateway')
  await gateway(started, 'notebooks', 'Notebook 7')
  await whole(started)
  need(faults.length === 0, faults.join('\n'))
  for (const one of await call('GET', 'kernels')) await call('DELETE', `kernels/${one.id}`)
  for (const one of await call('GET', 'terminals')) await call('DELETE', `terminals/${one.name}`)
} catch (error) {
  for (const context of browser.contexts()) for (const page of context.pages()) await shoot(page, 'failed').catch(() => {})
  console.log(error)
  process.exitCode = 1
} finally {
  await browser.close()
  fs.rmSync(folder, { recursive: true, force: true })
  process.exit()
}
