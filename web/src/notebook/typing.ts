// What a kernel says of code that somebody types in a cell: how a name may go on, and what is known of it.

import {
  acceptCompletion,
  autocompletion,
  type CompletionContext,
  type CompletionResult,
  closeCompletion,
  startCompletion,
} from '@codemirror/autocomplete'
import { type EditorState, type Extension, Prec, StateEffect, StateField } from '@codemirror/state'
import { EditorView, keymap, showTooltip, type Tooltip } from '@codemirror/view'

/** What may stand from start to end, in characters of the code. */
export interface Completions {
  matches: string[]
  start: number
  end: number
}

/** A kernel, as far as an editor asks it. */
export interface Kernel {
  /** It answers at once: a look wakes nothing. */
  awake: () => boolean
  complete: (code: string, cursor: number, signal: AbortSignal) => Promise<Completions>
  describe: (code: string, cursor: number) => Promise<string>
}

/** Counts characters as Python does, of text up to a place that JavaScript counts in UTF-16 units. */
export const characters = (text: string, at: number) => [...text.slice(0, at)].length

/** The place in UTF-16 units behind so many characters. */
export const units = (text: string, count: number) => [...text].slice(0, count).join('').length

async function complete(kernel: Kernel, context: CompletionContext): Promise<CompletionResult | null> {
  const typed = context.matchBefore(/\.\w*$/)
  if (!context.explicit && (!typed || !kernel.awake())) return null
  const code = context.state.doc.toString()
  const gone = new AbortController()
  context.addEventListener('abort', () => gone.abort())
  const found = await kernel.complete(code, characters(code, context.pos), gone.signal).catch(() => null)
  if (!found?.matches.length || context.aborted) return null
  return {
    from: units(code, found.start),
    options: found.matches.map((label, at) => ({ label, sortText: String(at).padStart(4, '0') })),
    validFor: /^\w*$/,
  }
}

/** Whether the cursor stands behind something on its line, so that Tab is for a name and not for a gap. */
function behindText(state: EditorState) {
  const { main } = state.selection
  return main.empty && /\S$/.test(state.sliceDoc(state.doc.lineAt(main.head).from, main.head))
}

const tell = StateEffect.define<Tooltip | null>()

const told = StateField.define<Tooltip | null>({
  create: () => null,
  update(tooltip, change) {
    for (const effect of change.effects) if (effect.is(tell)) return effect.value
    return change.docChanged || change.selection ? null : tooltip
  },
  provide: (field) => showTooltip.from(field),
})

function tooltipOf(pos: number, text: string): Tooltip {
  return {
    pos,
    above: true,
    create: () => {
      const dom = document.createElement('pre')
      dom.className = 'cove-told'
      dom.tabIndex = 0
      dom.textContent = text
      return { dom }
    },
  }
}

function describe(kernel: Kernel, view: EditorView) {
  if (!behindText(view.state)) return false
  const code = view.state.doc.toString()
  const at = view.state.selection.main.head
  void kernel.describe(code, characters(code, at)).then(
    (text) => {
      const now = view.state
      if (text && now.selection.main.head === at && now.doc.toString() === code)
        view.dispatch({ effects: tell.of(tooltipOf(at, text)) })
    },
    () => {},
  )
  return true
}

function close(view: EditorView) {
  if (closeCompletion(view)) return true
  if (!view.state.field(told)) return false
  view.dispatch({ effects: tell.of(null) })
  return true
}

const look = EditorView.theme({
  '.cm-tooltip': {
    background: 'var(--raised)',
    color: 'var(--text)',
    border: '1px solid var(--border)',
    borderRadius: '8px',
    boxShadow: '0 4px 16px rgb(0 0 0 / 0.14)',
    overflow: 'hidden',
  },
  '.cm-tooltip.cm-tooltip-autocomplete > ul': { fontFamily: 'var(--mono)', maxHeight: '220px' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li': { padding: '2px 10px' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]': {
    background: 'var(--accent)',
    color: 'var(--on-accent)',
  },
  '.cm-completionMatchedText': { textDecoration: 'none', fontWeight: '600' },
  '.cove-told': {
    margin: '0',
    padding: '8px 12px',
    maxWidth: 'min(720px, 90vw)',
    maxHeight: '260px',
    overflow: 'auto',
    whiteSpace: 'pre-wrap',
    fontFamily: 'var(--mono)',
    fontSize: '12px',
    lineHeight: '18px',
  },
})

/** Tab completes a name, a dot offers what is behind it, and Shift-Tab says what a name stands for. */
export function typing(kernel: Kernel): Extension {
  return [
    autocompletion({ override: [(context) => complete(kernel, context)], icons: false, maxRenderedOptions: 200 }),
    told,
    look,
    Prec.high(
      keymap.of([
        { key: 'Tab', run: (v) => acceptCompletion(v) || (behindText(v.state) && startCompletion(v)) },
        { key: 'Shift-Tab', run: (v) => describe(kernel, v) },
      ]),
    ),
    Prec.highest(keymap.of([{ key: 'Escape', run: close }])),
  ]
}
