import { expect, it } from 'vitest'
import { frames, parts } from './traceback'

const trace = [
  'Traceback (most recent call last):',
  '  File "<cell 3>", line 2, in <module>',
  '    df["x"]',
  '    ~~^^^^^',
  '  File "/opt/py/lib/python3.13/site-packages/pandas/core/frame.py", line 4102, in __getitem__',
  '    indexer = self.columns.get_loc(key)',
  '  File "/opt/py/lib/python3.13/site-packages/pandas/core/indexes/base.py", line 3812, in get_loc',
  '    raise KeyError(key) from err',
  "KeyError: 'x'",
]

it('finds own frames', () => {
  expect(frames(trace).map((f) => f.own)).toEqual([true, false, false])
  expect(frames(trace)[0]).toMatchObject({ file: '<cell 3>', line: 2, lines: ['    df["x"]', '    ~~^^^^^'] })
})

it('folds libraries and loses nothing', () => {
  const p = parts(trace)
  expect(p.map((x) => [x.own, x.frames])).toEqual([
    [true, 1],
    [false, 2],
    [true, 0],
  ])
  expect(p.map((x) => x.text).join('\n')).toBe(trace.join('\n'))
  expect(parts([5 as unknown as string, 'a\nb\n'])[0]?.text).toBe('a\nb')
})
