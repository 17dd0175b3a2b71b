import { createContext } from 'react'
import type { Reader } from './pages'
import type { Sheet } from './sheet'

/** Where the tables of outputs are, for those of which the first rows are here. */
export interface Tables {
  reader: Reader
  /** gone: the session is not there any more. paused: to read wakes it. */
  state: 'ready' | 'paused' | 'gone'
}

export const TablesContext = createContext<Tables | null>(null)

/** Makes a chart of a table: of one that is a cell's result, with the number by which Python keeps that. Null: nobody here may run code. */
export const ChartOfContext = createContext<((sheet: Sheet, count: number) => void) | null>(null)
