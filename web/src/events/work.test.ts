import { describe, expect, it } from 'vitest'
import type { Change } from '../api/channel'
import { applyChange, looked, noWorks, workOf } from './work'

const turn = (id: string, state: string): Change => ({ kind: 'turn', id, conversation: 'cnv_1', state })
const all = (...changes: Change[]) => changes.reduce((w, c) => applyChange(w, c, null), noWorks)

describe('what goes on in a conversation', () => {
  it('runs until all of its turns have ended, and is news then', () => {
    expect(workOf(noWorks, 'cnv_1')).toBe('')
    expect(workOf(all(turn('a', 'running')), 'cnv_1')).toBe('running')
    expect(workOf(all(turn('a', 'running'), turn('b', 'approval')), 'cnv_1')).toBe('approval')
    expect(workOf(all(turn('a', 'running'), turn('b', 'approval'), turn('b', 'completed')), 'cnv_1')).toBe('running')
    const over = all(turn('a', 'running'), turn('a', 'failed'))
    expect(workOf(over, 'cnv_1')).toBe('done')
    expect(workOf(looked(over, 'cnv_1'), 'cnv_1')).toBe('')
    expect(workOf(over, 'cnv_2')).toBe('')
  })

  it('is no news where somebody looks, nor when nothing of it was known', () => {
    const running = all(turn('a', 'running'))
    expect(workOf(applyChange(running, turn('a', 'completed'), 'cnv_1'), 'cnv_1')).toBe('')
    expect(workOf(all(turn('a', 'deleted')), 'cnv_1')).toBe('')
  })
})
