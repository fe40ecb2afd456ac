/** What the data plane does to a rule, each after a delay of its own and each can be held back. */
export type Step = 'accept' | 'advertise' | 'bind' | 'teardown' | 'report'

/** Milliseconds from the moment a step could be taken until it is. */
export type Delays = Partial<Record<Step, number>>

/** Decides when a step may be taken: not before its delay, while it is held, or while all is paused. */
export class Gates {
  readonly #delays: Delays
  readonly #held = new Set<string>()
  #paused = false
  #closed = false
  #moved = Promise.withResolvers<void>()

  constructor(delays: Delays) {
    this.#delays = delays
  }

  /** Nothing is done any more until `resume`. */
  pause(): void {
    this.#paused = true
  }

  resume(): void {
    this.#paused = false
    this.#move()
  }

  /** Holds one step back for a rule's name or a VIP, until what is answered is called. */
  hold(step: Step, subject: string): () => void {
    const key = `${step} ${subject}`
    this.#held.add(key)
    return () => {
      this.#held.delete(key)
      this.#move()
    }
  }

  close(): void {
    this.#closed = true
    this.#move()
  }

  /**
   * Resolves true when the step may be taken; false when it should be thought over, because
   * something changed (`woken`) or all is closing. `since`: when the step first could be taken.
   */
  async pass(
    step: Step,
    subjects: string[],
    since: number,
    woken: Promise<void>,
  ): Promise<boolean> {
    let awake = false
    const wake = woken.then(() => {
      awake = true
    })
    for (;;) {
      if (this.#closed || awake) return false
      const moved = this.#moved.promise
      if (this.#paused || subjects.some((subject) => this.#held.has(`${step} ${subject}`))) {
        await Promise.race([moved, wake])
        continue
      }
      const rest = since + (this.#delays[step] ?? 0) - performance.now()
      if (rest <= 0) return true
      const timer = Promise.withResolvers<void>()
      const handle = setTimeout(timer.resolve, rest)
      await Promise.race([timer.promise, moved, wake])
      clearTimeout(handle)
    }
  }

  #move(): void {
    const moved = this.#moved
    this.#moved = Promise.withResolvers<void>()
    moved.resolve()
  }
}
