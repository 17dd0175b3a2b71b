import { usePreferences } from '../shell/preferences'
import { en } from './en'
import { zh } from './zh'

export type Words = typeof en
export type Language = 'en' | 'zh'

const all: Record<Language, Words> = { en, zh }

export const languages = Object.entries(all).map(([id, words]) => ({ id: id as Language, name: words.name }))

export const languageOf = (wanted: string): Language =>
  wanted === 'en' || wanted === 'zh' ? wanted : navigator.language.toLowerCase().startsWith('zh') ? 'zh' : 'en'

export const wordsOf = (wanted: string): Words => all[languageOf(wanted)]

/** The words of the language that is set. */
export const useWords = (): Words => wordsOf(usePreferences().language)
