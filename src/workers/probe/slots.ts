/** Who waits for a slot. */
type Waiting = { given: () => void; calledOff: boolean }

/** So many that were served are dropped from the front of the queue at a time. */
const SERVED = 1_024

/** How many of a kind may be under way at once, over all that share this. */
export class Slots {
  #free: number
  #waiting: Waiting[] = []
  /** Those before it were served. */
  #next = 0

  constructor(count: number) {
    this.#free = count
  }

  /** Whether there is none to be had without waiting. */
  get areTaken(): boolean {
    return this.#free === 0
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
      const waiting = {
        given: () => {
          signal.removeEventListener('abort', callOff)
          resolve(true)
        },
        calledOff: false,
      }
      const callOff = () => {
        waiting.calledOff = true
        resolve(false)
      }
      this.#waiting.push(waiting)
      signal.addEventListener('abort', callOff, { once: true })
    })
  }

  give(): void {
    const next = this.#shift()
    if (next === undefined) this.#free += 1
    else next.given()
  }

  /** The first who waits still. A Set would go past all that left it, each time. */
  #shift(): Waiting | undefined {
    if (this.#waiting.length === 0) return undefined
    let next: Waiting | undefined
    do {
      next = this.#waiting[this.#next]
      this.#next += 1
    } while (next?.calledOff)
    if (next === undefined || this.#next >= SERVED) {
      this.#waiting = this.#waiting.slice(this.#next)
      this.#next = 0
    }
    return next
  }
}
