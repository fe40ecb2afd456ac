/**
 * Records what it is told last, one write at a time: two at once go over connections of their own and may
 * land in any order.
 */
export class Latest<T> {
  readonly #record: (value: T, isLatest: () => boolean) => Promise<void>
  #next: { value: T } | undefined
  #busy = false

  /** `record` doesn't reject; it may give up what isn't the latest any more. */
  constructor(record: (value: T, isLatest: () => boolean) => Promise<void>) {
    this.#record = record
  }

  tell(value: T): void {
    this.#next = { value }
    if (!this.#busy) void this.#run()
  }

  async #run(): Promise<void> {
    this.#busy = true
    try {
      while (this.#next !== undefined) {
        const { value } = this.#next
        this.#next = undefined
        await this.#record(value, () => this.#next === undefined)
      }
    } finally {
      this.#busy = false
    }
  }
}
