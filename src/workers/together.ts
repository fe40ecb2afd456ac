import { sqlState } from '../db/failure.ts'

type Entry<T, R> = { item: T; resolve: (result: R) => void; reject: (error: unknown) => void }

/**
 * Does work of one kind for many who ask at about the same time: what is asked for while some of it is
 * under way goes together in the next turn. Each turn costs a round trip, whatever it is about.
 */
export class Together<T, R> {
  readonly #work: (items: T[]) => Promise<readonly R[]>
  readonly #apart: number
  readonly #most: number
  readonly #expected: () => number
  #waiting: Entry<T, R>[] = []
  #busy = false
  #scheduled = false
  #last = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined

  /**
   * `work` answers one result for each item, in their order. `apart`: turns begin at least so long (ms)
   * after one another, unless `most` items wait or all that are `expected` to; no turn has more than `most`.
   */
  constructor(
    work: (items: T[]) => Promise<readonly R[]>,
    options: { apart?: number; most?: number; expected?: () => number } = {},
  ) {
    this.#work = work
    this.#apart = options.apart ?? 0
    this.#most = options.most ?? 64
    this.#expected = options.expected ?? (() => Number.POSITIVE_INFINITY)
  }

  do(item: T): Promise<R> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject })
      this.#soon()
    })
  }

  /** Those who ask in this moment come along, and who was answered goes on and isn't expected any more. */
  #soon(): void {
    if (this.#busy || this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      this.#next()
    })
  }

  #next(): void {
    if (this.#waiting.length === 0) return
    const rest = this.#last + this.#apart - performance.now()
    if (rest > 0 && this.#waiting.length < Math.min(this.#most, this.#expected())) {
      this.#timer ??= setTimeout(() => {
        this.#timer = undefined
        this.#soon()
      }, rest)
      return
    }
    clearTimeout(this.#timer)
    this.#timer = undefined
    void this.#turn()
  }

  async #turn(): Promise<void> {
    this.#busy = true
    this.#last = performance.now()
    await this.#attempt(this.#waiting.splice(0, this.#most))
    this.#busy = false
    if (this.#waiting.length > 0) this.#soon()
  }

  async #attempt(entries: Entry<T, R>[]): Promise<void> {
    try {
      const results = await this.#work(entries.map(({ item }) => item))
      for (const [place, { resolve, reject }] of entries.entries()) {
        const result = results[place]
        if (result === undefined) reject(new Error('there is no result for one of the items'))
        else resolve(result)
      }
    } catch (error) {
      // What PostgreSQL refuses may be the fault of one of them: the others don't suffer by it.
      if (entries.length > 1 && sqlState(error) !== undefined)
        for (const entry of entries) await this.#attempt([entry])
      else for (const { reject } of entries) reject(error)
    }
  }
}
