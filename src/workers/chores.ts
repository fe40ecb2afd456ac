import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from './logger.ts'

/** What couldn't be done is tried again after this time (ms), give or take half of it. */
const AGAIN = 1_000

/** What one worker has to do later, again and again, or until it succeeds; all of it ends with `close`. */
export class Chores {
  readonly #log: Logger
  readonly #ending = new AbortController()
  readonly #timers = new Set<NodeJS.Timeout>()
  readonly #appointments = new Map<string, NodeJS.Timeout>()

  constructor(log: Logger) {
    this.#log = log
  }

  get closed(): boolean {
    return this.#ending.signal.aborted
  }

  close(): void {
    this.#ending.abort()
    for (const timer of [...this.#timers, ...this.#appointments.values()]) clearTimeout(timer)
  }

  /** Does something until it succeeds or the chores are closed. */
  async untilDone(what: string, work: () => Promise<void>): Promise<void> {
    while (!this.closed) {
      try {
        return await work()
      } catch (error) {
        this.#log.warn({ err: error }, `could not ${what}; it is tried again`)
        await this.pause(AGAIN)
      }
    }
  }

  /** Give or take half of it (ms). */
  async pause(milliseconds: number): Promise<void> {
    const { signal } = this.#ending
    const wait = delay(milliseconds * (0.5 + Math.random()), undefined, { signal })
    // Cut short by the end, which whoever waits here looks for next.
    await wait.catch(() => undefined)
  }

  every(milliseconds: number, work: () => Promise<void>): void {
    this.later(milliseconds, async () => {
      try {
        await work()
      } finally {
        this.every(milliseconds, work)
      }
    })
  }

  /** At most one for each key: the one that was made last. */
  appoint(key: string, milliseconds: number, work: () => void): void {
    if (this.closed) return
    clearTimeout(this.#appointments.get(key))
    const timer = setTimeout(() => {
      this.#appointments.delete(key)
      work()
    }, milliseconds)
    this.#appointments.set(key, timer)
  }

  later(milliseconds: number, work: () => Promise<void>): void {
    if (this.closed) return
    const timer = setTimeout(async () => {
      this.#timers.delete(timer)
      try {
        await work()
      } catch (error) {
        this.#log.warn({ err: error }, 'a look at the cluster failed')
      }
    }, milliseconds)
    this.#timers.add(timer)
  }
}
