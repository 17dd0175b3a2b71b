import { describe, expect, it } from 'vitest'
import { en } from '../words/en'
import { nameOf } from './names'

const name = (code: string) => nameOf(code, en.turn.names)

describe('the name of a step', () => {
  it.each([
    ['\n# Read the file\nx = 1', 'Read the file'],
    ['%restart\n\n## 读取\n', '读取'],
    ['import pandas as pd\n\n# Read the file\ndf = 1', 'Read the file'],
    ['# /// script\n# dependencies = ["rich"]\n# ///\nx = 1', 'x = 1'],
    ['#!/usr/bin/env python\nx = 1', 'x = 1'],
    ['', ''],
    ['x = 1\n', 'x = 1'],
    ["import pandas as pd\ndf = pd.read_csv('data/sales.csv')\ndf.head()", 'Read sales.csv'],
    ['from pathlib import Path\npath = "sales.xlsx"\ndf = pd.read_excel(path, sheet_name=1)', 'Read sales.xlsx'],
    ["import json\nwith open('a.json') as f:\n    data = json.load(f)", 'Read a.json'],
    ["with open('out.txt', 'w') as f:\n    f.write('x')", 'Write out.txt'],
    ["g = df.groupby('region').sum()\ng.to_csv('growth.csv')", 'Write growth.csv'],
    ["import matplotlib.pyplot as plt\nax = g.plot.bar()\nax.set_title('By region')\nplt.show()", 'Draw: By region'],
    ['import plotly.express as px\npx.bar(g)', 'Draw a chart'],
    ['def f(x):\n    return pd.read_csv("no.csv")\n\nf(2)', 'f(2)'],
    ['def f(x):\n    return x\n\nclass G:\n    pass', 'Define f, G'],
    ['import pandas as pd\nfrom IPython.display import HTML, display', 'Import pandas, IPython'],
    ['"""\nimport this\n# no comment\n"""\ny = 2', 'y = 2'],
    ['data = {\n  # inside\n  "a": 1,\n}\nprint(data)', 'data = {'],
    ['import warnings\nwarnings.filterwarnings("ignore")\ndf.describe()', 'df.describe()'],
    ["s = '{}'.format(1)\nprint(s)", "s = '{}'.format(1)"],
  ])('of %j', (code, want) => expect(name(code)).toBe(want))

  it('is short, whatever the code is', () => {
    expect(name(`x = ${'1'.repeat(500)}`)).toHaveLength(90)
    const odd = `${'open('.repeat(50_000)}\n${"read_csv('".repeat(20_000)}`
    expect(name(odd).length).toBeLessThanOrEqual(90)
  })
})
