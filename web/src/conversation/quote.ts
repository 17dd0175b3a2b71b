// What a question quotes of steps that a person has changed: lines of a block quote at its end, which the page shows folded.

/** Of all that is quoted, in characters. */
export const longestQuote = 4000

const head = '> [cove] '

/** As lines that a model, and a reader, can tell from the words of the question, whatever is in them. */
export const quoted = (text: string) =>
  text
    .split(/\r\n?|[\n\u2028\u2029]/)
    .map((line) => `> ${line}`)
    .join('\n')

/** A question with a quote after it. */
export const withQuote = (question: string, title: string, quote: string) => `${question}\n\n${head}${title}\n${quote}`

/** The words of a question, and what it quotes, with the mark of that. */
export function splitQuote(prompt: string): { question: string; quote: string } {
  const at = prompt.lastIndexOf(`\n\n${head}`)
  const quote = at < 0 ? '' : prompt.slice(at)
  const whole = quote.slice(2).split('\n')
  if (!quote || !whole.every((line) => line.startsWith('> '))) return { question: prompt, quote: '' }
  return { question: prompt.slice(0, at), quote }
}

/** What is quoted, to be read. */
export const readable = (quote: string) => quote.trimStart().replace(head, '').replace(/^> /gm, '')
