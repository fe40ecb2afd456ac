import { concerns, type Interest, type LogBatch, type ReadBatch } from './batch.ts'
import { CursorLost, type Position, readCursor, writeCursor } from './cursor.ts'
import { pauseAfter, type Tail, type Waiting } from './tail.ts'

export type Following = AsyncIterableIterator<LogBatch, undefined> & {
  /** Ends the wait for news, this or the next, with a batch of no events: it tells how far the log was read. */
  nudge(): void
}

const DONE = { done: true, value: undefined } as const
/** In no log: whoever reads from there is told so. */
const NOWHERE: Position = { epoch: '', xid: '0', seq: '0' }

/** One who follows the log from a cursor on: reads for itself until it has all, then waits with the others. */
export class Follower implements Following, Waiting {
  position: Position
  readonly interest: Interest
  readonly #tail: Tail
  readonly #signals: readonly AbortSignal[]
  readonly #onAbort = () => this.#end()
  /** There may be more than it has read. */
  #behind = true
  #nudged = false
  #over = false
  #failures = 0
  /** Ends what it waits for, with a batch to tell or with none. */
  #resolve: ((batch?: LogBatch) => void) | undefined

  constructor(
    tail: Tail,
    after: string,
    { interest, signals }: { interest: Interest; signals: readonly AbortSignal[] },
  ) {
    this.interest = interest
    this.#tail = tail
    this.position = readCursor(after) ?? NOWHERE
    this.#signals = signals
    for (const signal of signals) {
      signal.addEventListener('abort', this.#onAbort, { once: true })
      if (signal.aborted) this.#end()
    }
  }

  async next(): Promise<IteratorResult<LogBatch, undefined>> {
    try {
      while (!this.#over) {
        const batch = await (this.#behind ? this.#read() : this.#wait())
        if (batch === undefined || this.#over) continue
        this.#nudged = false
        return { done: false, value: batch }
      }
      return DONE
    } catch (error) {
      this.#end()
      throw error
    }
  }

  async return(): Promise<IteratorResult<LogBatch, undefined>> {
    this.#end()
    return DONE
  }

  nudge(): void {
    this.#nudged = true
    if (this.#resolve === undefined) return
    this.#tail.delete(this)
    this.#answer(this.#nothing())
  }

  wake(news?: ReadBatch): void {
    if (news === undefined) this.#behind = true
    else this.position = news.position
    this.#answer(news)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end()
  }

  #end(): void {
    this.#over = true
    for (const signal of this.#signals) signal.removeEventListener('abort', this.#onAbort)
    this.#tail.delete(this)
    this.#answer()
  }

  #answer(batch?: LogBatch): void {
    const resolve = this.#resolve
    this.#resolve = undefined
    resolve?.(batch)
  }

  #nothing(): LogBatch {
    return { events: [], cursor: writeCursor(this.position) }
  }

  async #read(): Promise<LogBatch | undefined> {
    try {
      const batch = await this.#tail.read(this.position)
      this.#failures = 0
      this.position = batch.position
      this.#behind = batch.full
      return concerns(batch, this.interest) ? batch : undefined
    } catch (error) {
      if (error instanceof CursorLost) throw error
      this.#tail.onError(error)
      this.#failures += 1
      // The store is away: it stays where it is, and goes on when it is back.
      return this.#pause(pauseAfter(this.#failures))
    }
  }

  async #wait(): Promise<LogBatch | undefined> {
    this.#behind = !this.#tail.add(this)
    if (this.#behind) return undefined
    if (this.#nudged) {
      this.#tail.delete(this)
      return this.#nothing()
    }
    return new Promise((resolve) => {
      this.#resolve = resolve
    })
  }

  async #pause(ms: number): Promise<LogBatch | undefined> {
    // It may have been ended, or nudged, while it read.
    if (this.#over) return undefined
    if (this.#nudged) return this.#nothing()
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#answer(), ms)
      timer.unref()
      this.#resolve = (batch) => {
        clearTimeout(timer)
        resolve(batch)
      }
    })
  }
}
