/** Goes to a turn of a conversation that is being opened: when it is there, and again while what is above it still grows. */
export function arrive(turn: string) {
  const end = Date.now() + 6000
  let seen = 0
  const look = () => {
    const item = document.getElementById(turn)
    if (item?.dataset.turn !== undefined) {
      item.scrollIntoView({ block: 'start' })
      if (seen++ === 0) item.focus({ preventScroll: true })
    } else document.querySelector<HTMLButtonElement>('[data-earlier]')?.click()
    if (seen < 6 && Date.now() < end && !moved) setTimeout(look, 200)
  }
  // Whoever scrolls or writes meanwhile is left in peace.
  let moved = false
  const stop = () => {
    moved = true
  }
  for (const name of ['wheel', 'pointerdown', 'keydown'] as const)
    window.addEventListener(name, stop, { once: true, passive: true })
  setTimeout(look, 100)
}
