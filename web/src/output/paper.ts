import { createContext } from 'react'

/** On paper nothing unfolds: code is there with all of its lines. */
export const PaperContext = createContext(false)
