// What leaves the page as a notebook runs in Jupyter.
import { execFile } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { check, env, expect, until } from '../kit.mjs'
import { answered, ask } from '../people.mjs'

const run = `
import json, sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
nbformat.validate(notebook)
NotebookClient(notebook, timeout=120, resources={'metadata': {'path': sys.argv[2]}}).execute()
cells = [c for c in notebook.cells if c.cell_type == 'code']
print(json.dumps([''.join(o.get('text', '') for o in c.outputs) for c in cells]))
`

await check('the notebook of a conversation runs in Jupyter without errors', {}, async (page) => {
  await ask(page, `run: # Write a file\nopen('数据.csv', 'w').write('city,people\\nRome,3\\n')\nprint('written')`)
  await answered(page, 'It ran.')
  await ask(
    page,
    "run: # Read it\nimport csv\nrows = list(csv.reader(open('数据.csv')))\nprint('sum', sum(int(r[1]) for r in rows[1:]) * 14)",
  )
  await until(async () => (await page.getByText('It ran.').count()) === 2, 'the second answer')
  await page.getByRole('button', { name: 'Share and export' }).click()
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('menuitem', { name: 'Export as a notebook' }).click(),
  ])
  const folder = mkdtempSync(join(tmpdir(), 'notebook-'))
  const file = join(folder, 'of-the-page.ipynb')
  await download.saveAs(file)
  const { stdout } = await promisify(execFile)(env('COVE_JUPYTER'), ['-c', run, file, folder], {
    env: { ...process.env, HOME: folder, IPYTHONDIR: folder, JUPYTER_ALLOW_INSECURE_WRITES: '1' },
  })
  const said = JSON.parse(stdout.trim().split('\n').at(-1))
  expect(said.join('').includes('written') && said.join('').includes('sum 42'), `Jupyter shows ${stdout}`)
})
