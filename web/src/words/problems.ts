import { useSyncExternalStore } from 'react'
import { preferences, usePreferences } from '../shell/preferences'
import { type Language, languageOf } from '.'

// What is said of the server's errors, by their codes. The words come apart from the page and early, so that they are there when the server is not.

type Said = Record<string, readonly [what: string, todo: string]>

const known: Partial<Record<Language, Said>> = {}
const asked = new Map<Language, Promise<void>>()
const readers = new Set<() => void>()

/** Has the words of a language come. */
export function loadProblems(language: Language): Promise<void> {
  const coming = asked.get(language)
  if (coming) return coming
  const module: Promise<{ problems: Said }> = language === 'zh' ? import('./zh/problems') : import('./en/problems')
  const now = module.then(
    ({ problems }) => {
      known[language] = problems
      for (const call of readers) call()
    },
    () => {
      asked.delete(language)
    },
  )
  asked.set(language, now)
  return now
}

const subscribe = (call: () => void) => {
  readers.add(call)
  return () => {
    readers.delete(call)
  }
}

export interface Explained {
  what: string
  todo: string
  /** What the server said itself; nothing when it is shown already. */
  detail: string
  /** The server's own words name what is to be corrected. */
  open: boolean
}

const telling = /^invalid_|_(invalid|failed)$|^check_tool_missing$/

/** What events and answers say of a problem; an error of the API is one too. */
interface Told {
  code?: string | undefined
  message?: string | undefined
  hint?: string | undefined
  request?: string | undefined
}

/** A problem in the reader's words, or in the server's own where there are none. */
export function explain(
  { code = '', message = '', hint = '', request = '' }: Told,
  language: Language = languageOf(preferences().language),
): Explained {
  const said = known[language]
  const words = said && Object.hasOwn(said, code) ? said[code] : undefined
  if (!words) return { what: message, todo: hint, detail: '', open: false }
  const number = request && ['internal', 'unknown'].includes(code) ? request : ''
  return {
    what: words[0],
    todo: words[1],
    detail: [message, hint, number].filter(Boolean).join('\n'),
    open: telling.test(code),
  }
}

/** Explains problems in the language that is set. */
export function useExplain(): (problem: Told) => Explained {
  const language = languageOf(usePreferences().language)
  useSyncExternalStore(subscribe, () => known[language])
  void loadProblems(language)
  return (problem) => explain(problem, language)
}
