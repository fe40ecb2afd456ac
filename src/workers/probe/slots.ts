/** How many probes may be under way at once, over all clusters that share this. */
export class Slots {
  #free: number
  readonly #waiting = new Set<() => void>()

  constructor(count: number) {
    this.#free = count
  }

  /** Takes one if one is free, without waiting. */
  takeNow(): boolean {
    if (this.#free === 0) return false
    this.#free -= 1
    return true
  }

  /** Waits for a slot, first come first served; false: the signal ended the wait, and none was taken. */
  take(signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false)
    if (this.takeNow()) return Promise.resolve(true)
    return new Promise((resolve) => {
      const given = () => {
        signal.removeEventListener('abort', givenUp)
        resolve(true)
      }
      const givenUp = () => {
        this.#waiting.delete(given)
        resolve(false)
      }
      this.#waiting.add(given)
      signal.addEventListener('abort', givenUp, { once: true })
    })
  }

  give(): void {
    const [next] = this.#waiting
    if (next === undefined) {
      this.#free += 1
      return
    }
    this.#waiting.delete(next)
    next()
  }
}
