import { createContext } from 'react'
import type { Reader } from './pages'

/** Where the tables of outputs are, for those of which the first rows are here. */
export interface Tables {
  reader: Reader
  /** gone: the session is not there any more. paused: to read wakes it. */
  state: 'ready' | 'paused' | 'gone'
}

export const TablesContext = createContext<Tables | null>(null)
