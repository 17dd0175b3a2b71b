export interface Part {
  text: string
  mark: boolean
}

const dense = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]+/gu

/** What of a question can be seen in a text: its words; of Chinese, which is written without spaces, also each pair of characters, as the server looks for. */
export function wanted(query: string): string[] {
  const out = new Set<string>()
  for (const run of query.toLowerCase().match(/[\p{L}\p{M}\p{N}_]+/gu) ?? []) {
    for (const word of run.replace(dense, ' ').split(' ')) if (word) out.add(word)
    for (const [text] of run.matchAll(dense)) {
      const letters = [...text]
      if (letters.length === 1) out.add(text)
      for (let i = 0; i + 1 < letters.length; i++) out.add(`${letters[i]}${letters[i + 1]}`)
    }
  }
  return [...out]
}

const isLetter = (c: string | undefined) => c !== undefined && /[\p{L}\p{N}_]/u.test(c)

/** A text in parts, of which those are marked that were looked for. A word counts where one begins, not inside of another. */
export function marked(text: string, query: string): Part[] {
  // Some letters change their length in lower case: then nothing is marked rather than the wrong thing.
  const low = text.toLowerCase()
  if (low.length !== text.length) return [{ text, mark: false }]
  const on = new Uint8Array(text.length)
  for (const word of wanted(query)) {
    const inDense = word.search(dense) === 0
    for (let at = low.indexOf(word); at >= 0; at = low.indexOf(word, at + 1))
      if (inDense || !isLetter(low[at - 1]) || low[at - 1]?.search(dense) === 0) on.fill(1, at, at + word.length)
  }
  const parts: Part[] = []
  for (let i = 0, from = 0; i <= text.length; i++)
    if (i === text.length || (i > from && on[i] !== on[from])) {
      if (i > from) parts.push({ text: text.slice(from, i), mark: on[from] === 1 })
      from = i
    }
  return parts
}
