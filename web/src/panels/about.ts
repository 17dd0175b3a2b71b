// What the panels have to say to the box in which a question is written, wherever that is.

const readers = new Set<(text: string) => void>()

/** Calls back with words to begin a question with. */
export function onAbout(call: (text: string) => void) {
  readers.add(call)
  return () => {
    readers.delete(call)
  }
}

export function tellAbout(text: string) {
  // The dialog that it comes from gives the focus back first.
  setTimeout(() => {
    for (const call of readers) call(text)
  }, 50)
}
