import type { Clock } from '../../src/clusters/clock.ts'

type Sleeper = { due: number; wake: () => void }

/**
 * A clock that a test turns by hand. Back-offs pass by themselves, at once, and are noted; the long
 * waits (a watch that should have ended) pass when the test says so.
 */
export class TestClock implements Clock {
  /** Length of each short sleep, in order. */
  readonly pauses: number[] = []
  #now = 1_000
  readonly #sleepers = new Set<Sleeper>()
  readonly #shortMs: number

  constructor(shortMs = 36_000) {
    this.#shortMs = shortMs
  }

  now = (): number => this.#now

  sleep = async (ms: number, signal: AbortSignal): Promise<void> => {
    if (signal.aborted) return
    if (ms <= this.#shortMs) {
      this.pauses.push(ms)
      // A turn of the event loop, so that a loop that only sleeps can't starve the server.
      await new Promise(setImmediate)
      this.advance(ms)
      return
    }
    await new Promise<void>((resolve) => {
      const sleeper = { due: this.#now + ms, wake: resolve }
      this.#sleepers.add(sleeper)
      signal.addEventListener('abort', () => {
        this.#sleepers.delete(sleeper)
        resolve()
      })
    })
  }

  advance(ms: number): void {
    this.#now += ms
    for (const sleeper of this.#sleepers) {
      if (sleeper.due > this.#now) continue
      this.#sleepers.delete(sleeper)
      sleeper.wake()
    }
  }
}
