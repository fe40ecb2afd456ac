/**
 * Keys to be looked at: each at most once in the queue, and never twice at the same time. What is
 * added while it is being looked at is looked at once more after. What somebody asked for goes ahead
 * of what is only looked over.
 */
export class DirtyQueue {
  readonly #work: (key: string) => Promise<void>
  readonly #concurrency: number
  readonly #asked = new Set<string>()
  readonly #waiting = new Set<string>()
  readonly #running = new Set<string>()
  readonly #idle = new Set<() => void>()
  #closed = false

  /** `work` must not reject. */
  constructor(concurrency: number, work: (key: string) => Promise<void>) {
    this.#concurrency = concurrency
    this.#work = work
  }

  add(key: string, { ahead = false } = {}): void {
    if (this.#closed) return
    if (ahead) {
      this.#asked.add(key)
      this.#waiting.delete(key)
    } else if (!this.#asked.has(key)) {
      this.#waiting.add(key)
    }
    this.#pump()
  }

  /** Keys that are waiting or being looked at. */
  get size(): number {
    return this.#asked.size + this.#waiting.size + this.#running.size
  }

  /** Takes no more, and resolves when what is under way has ended. */
  async close(): Promise<void> {
    this.#closed = true
    this.#asked.clear()
    this.#waiting.clear()
    if (this.#running.size === 0) return
    await new Promise<void>((resolve) => this.#idle.add(resolve))
  }

  #pump(): void {
    for (const lane of [this.#asked, this.#waiting]) {
      for (const key of lane) {
        if (this.#running.size >= this.#concurrency) return
        if (this.#running.has(key)) continue
        lane.delete(key)
        this.#running.add(key)
        void this.#run(key)
      }
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
