import { closeBrackets, closeBracketsKeymap } from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands'
import { python } from '@codemirror/lang-python'
import { bracketMatching, HighlightStyle, indentUnit, syntaxHighlighting } from '@codemirror/language'
import { EditorState, Prec } from '@codemirror/state'
import { drawSelection, EditorView, highlightSpecialChars, keymap, placeholder } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { useEffect, useRef } from 'react'
import { type Kernel, typing } from './typing'

const colours = HighlightStyle.define([
  {
    tag: [tags.keyword, tags.operatorKeyword, tags.controlKeyword, tags.definitionKeyword, tags.moduleKeyword],
    color: 'var(--code-keyword)',
  },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--code-string)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--code-number)' },
  { tag: tags.comment, color: 'var(--code-comment)' },
  {
    tag: [
      tags.function(tags.variableName),
      tags.function(tags.definition(tags.variableName)),
      tags.definition(tags.className),
    ],
    color: 'var(--code-name)',
  },
])

const look = EditorView.theme({
  '&': { fontSize: '13px', backgroundColor: 'transparent', color: 'var(--text)' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '20px' },
  '.cm-content': { padding: '10px 0', caretColor: 'var(--text)' },
  '.cm-line': { padding: '0 14px' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '.cm-placeholder': { color: 'var(--faint)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    background: 'color-mix(in srgb, var(--accent) 24%, transparent)',
  },
  '&.cm-focused .cm-matchingBracket': { backgroundColor: 'color-mix(in srgb, var(--accent) 22%, transparent)' },
})

const nonce = document.querySelector<HTMLMetaElement>('meta[name="style-nonce"]')?.content ?? ''

interface Props {
  code: string
  label: string
  hint: string
  focused: boolean
  /** Text, not Python. */
  plain?: boolean
  /** Of the code, where it has one; it does not change. */
  kernel?: Kernel | undefined
  onChange: (code: string) => void
  onRun: (how: 'run' | 'next' | 'insert') => void
  onFocus?: () => void
  onLeave?: () => void
}

export function Editor({
  code,
  label,
  hint,
  focused,
  plain = false,
  kernel,
  onChange,
  onRun,
  onFocus,
  onLeave,
}: Props) {
  const box = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView | null>(null)
  const latest = useRef({ onChange, onRun, onFocus, onLeave })
  latest.current = { onChange, onRun, onFocus, onLeave }
  // biome-ignore lint/correctness/useExhaustiveDependencies: the editor is made once, and keeps its own text
  useEffect(() => {
    if (!box.current) return
    const run = (how: 'run' | 'next' | 'insert') => {
      latest.current.onRun(how)
      return true
    }
    const leave = (v: EditorView) => {
      v.contentDOM.blur()
      latest.current.onLeave?.()
      return true
    }
    const made = new EditorView({
      parent: box.current,
      state: EditorState.create({
        doc: code,
        extensions: [
          nonce ? EditorView.cspNonce.of(nonce) : [],
          kernel ? typing(kernel) : [],
          Prec.highest(
            keymap.of([
              { key: 'Shift-Enter', run: () => run('next') },
              { key: 'Mod-Enter', run: () => run('run') },
              { key: 'Ctrl-Enter', run: () => run('run') },
              { key: 'Alt-Enter', run: () => run('insert') },
              { key: 'Escape', run: leave },
            ]),
          ),
          history(),
          drawSelection(),
          highlightSpecialChars(),
          ...(plain ? [] : [bracketMatching(), closeBrackets(), python()]),
          indentUnit.of('    '),
          syntaxHighlighting(colours),
          look,
          placeholder(hint),
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ 'aria-label': label, spellcheck: 'false', autocapitalize: 'off' }),
          keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, indentWithTab]),
          EditorView.updateListener.of((u) => {
            if (u.docChanged) latest.current.onChange(u.state.doc.toString())
            if (u.focusChanged && u.view.hasFocus) latest.current.onFocus?.()
          }),
        ],
      }),
    })
    view.current = made
    return () => made.destroy()
  }, [])
  useEffect(() => {
    if (focused && view.current && !view.current.hasFocus) view.current.focus()
  }, [focused])
  return <div ref={box} />
}
