/**
 * Keys to be looked at: each at most once in the queue, and never twice at the same time. What is
 * added while it is being looked at is looked at once more after. What somebody asked for goes ahead
 * of what is only looked over.
 */
export class DirtyQueue {
  readonly #work: (key: string, leave: () => void) => Promise<number>
  readonly #concurrency: number
  readonly #most: number
  /** By key: up to which number something was asked; Infinity: it has to be looked at whatever it is. */
  readonly #asked = new Map<string, number>()
  readonly #waiting = new Set<string>()
  readonly #running = new Set<string>()
  /** Of those: they have left their place to others, and only tell yet what they saw. */
  readonly #left = new Set<string>()
  /** Of those that are being looked at: something was noticed that they may not have seen. */
  readonly #noticed = new Set<string>()
  readonly #idle = new Set<() => void>()
  #closed = false

  /**
   * `work` must not reject; it answers up to which number it has done what was asked. It may leave its place,
   * one of `concurrency`, before it ends: the next key is looked at then, and this one isn't yet. `most`: so many
   * are under way in all.
   */
  constructor(
    { concurrency, most = concurrency }: { concurrency: number; most?: number },
    work: (key: string, leave: () => void) => Promise<number>,
  ) {
    this.#concurrency = concurrency
    this.#most = most
    this.#work = work
  }

  /** `asked`: somebody asked for it, and needn't be answered again by a look that did all up to that number. */
  add(key: string, { asked }: { asked?: number } = {}): void {
    if (this.#closed) return
    if (asked !== undefined) {
      const known = this.#waiting.delete(key) ? Number.POSITIVE_INFINITY : this.#asked.get(key)
      this.#asked.set(key, Math.max(known ?? asked, asked))
    } else if (this.#asked.has(key)) {
      this.#asked.set(key, Number.POSITIVE_INFINITY)
    } else {
      this.#waiting.add(key)
    }
    this.#pump()
  }

  /** Something was noticed that whoever looks sees: a look that is under way may see it, too. */
  notice(key: string): void {
    if (this.#running.has(key)) this.#noticed.add(key)
    else this.add(key)
  }

  /** The look that is under way has seen all that was noticed so far, and nothing is left to do of it. */
  caughtUp(key: string): void {
    this.#noticed.delete(key)
  }

  /** How many wait of those that somebody asked for. */
  get asked(): number {
    return this.#asked.size
  }

  /** How many are being looked at. */
  get running(): number {
    return this.#running.size
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
      for (const key of lane.keys()) {
        if (this.#running.size >= this.#most) return
        if (this.#running.size - this.#left.size >= this.#concurrency) return
        if (this.#running.has(key)) continue
        lane.delete(key)
        this.#running.add(key)
        void this.#run(key)
      }
    }
  }

  async #run(key: string): Promise<void> {
    try {
      const done = await this.#work(key, () => {
        this.#left.add(key)
        this.#pump()
      })
      const asked = this.#asked.get(key)
      if (asked !== undefined && asked <= done) this.#asked.delete(key)
    } finally {
      this.#running.delete(key)
      this.#left.delete(key)
      if (this.#noticed.delete(key)) this.add(key)
      if (this.#running.size === 0) for (const resolve of this.#idle) resolve()
      this.#pump()
    }
  }
}
