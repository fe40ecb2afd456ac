/** A number of places for each key: of sockets, or streams, that are open at the same time. */
export class Places {
  readonly #most: number
  readonly #taken = new Map<string, number>()

  constructor(most: number) {
    this.#most = most
  }

  /** Takes one; answers how to give it back (once is enough), or null where none is left. */
  take(key: string): (() => void) | null {
    const taken = this.#taken.get(key) ?? 0
    if (taken >= this.#most) return null
    this.#taken.set(key, taken + 1)
    let held = true
    return () => {
      if (!held) return
      held = false
      const left = (this.#taken.get(key) ?? 1) - 1
      if (left > 0) this.#taken.set(key, left)
      else this.#taken.delete(key)
    }
  }

  /** How many are taken in all. */
  get taken(): number {
    let all = 0
    for (const taken of this.#taken.values()) all += taken
    return all
  }
}
