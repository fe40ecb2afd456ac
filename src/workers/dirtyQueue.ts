/**
 * Keys to be looked at: each at most once in the queue, and never twice at the same time. What is
 * added while it is being looked at is looked at once more after.
 */
export class DirtyQueue {
  readonly #work: (key: string) => Promise<void>
  readonly #concurrency: number
  readonly #waiting = new Set<string>()
  readonly #running = new Set<string>()
  readonly #idle = new Set<() => void>()
  #closed = false

  /** `work` must not reject. */
  constructor(concurrency: number, work: (key: string) => Promise<void>) {
    this.#concurrency = concurrency
    this.#work = work
  }

  add(key: string): void {
    if (this.#closed) return
    this.#waiting.add(key)
    this.#pump()
  }

  /** Keys that are waiting or being looked at. */
  get size(): number {
    return this.#waiting.size + this.#running.size
  }

  /** Takes no more, and resolves when what is under way has ended. */
  async close(): Promise<void> {
    this.#closed = true
    this.#waiting.clear()
    if (this.#running.size === 0) return
    await new Promise<void>((resolve) => this.#idle.add(resolve))
  }

  #pump(): void {
    for (const key of this.#waiting) {
      if (this.#running.size >= this.#concurrency) return
      if (this.#running.has(key)) continue
      this.#waiting.delete(key)
      this.#running.add(key)
      void this.#run(key)
    }
  }

  async #run(key: string): Promise<void> {
    try {
      await this.#work(key)
    } finally {
      this.#running.delete(key)
      if (this.#running.size === 0) for (const resolve of this.#idle) resolve()
      this.#pump()
    }
  }
}
