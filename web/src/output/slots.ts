// At most six frames live at a time, over all Outputs of the page; the one that was seen longest ago gives way.

export class Slots {
  private live: { id: symbol; end: () => void }[] = []
  constructor(private readonly most: number) {}

  take(id: symbol, end: () => void) {
    this.live = this.live.filter((s) => s.id !== id)
    this.live.push({ id, end })
    while (this.live.length > this.most) this.live.shift()?.end()
  }

  leave(id: symbol) {
    this.live = this.live.filter((s) => s.id !== id)
  }

  get count(): number {
    return this.live.length
  }
}

export const slots = new Slots(6)
