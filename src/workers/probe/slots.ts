/** How many probes may be under way at once, over all clusters that share this. */
export class Slots {
  #free: number
  readonly #waiting = new Set<() => void>()

  constructor(count: number) {
    this.#free = count
  }

  /** Waits for a slot, first come first served; false: the signal ended the wait, and none was taken. */
  take(signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false)
    if (this.#free > 0) {
      this.#free -= 1
      return Promise.resolve(true)
    }
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
