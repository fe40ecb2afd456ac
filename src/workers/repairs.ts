/** So many repairs of one load balancer are made at once; each further one waits … */
const PROMPT = 5
/** … so long (ms) after the one before, and twice as long each time, up to the longest. */
const REST = { first: 250, longest: 10_000 }
/** Left alone for so long (ms), it is repaired at once again. */
const CALM = 20_000

type Made = { count: number; last: number; until: number | undefined }

/**
 * Paces the repair of what others change in a cluster. Somebody who always changes it back would be answered
 * as fast as both can write (22 times a second, measured), each time with events in the log.
 */
export class Repairs {
  readonly #now: () => number
  readonly #made = new Map<string, Made>()

  /** `now`: milliseconds of a clock that never goes back. */
  constructor(now: () => number) {
    this.#now = now
  }

  /**
   * How long (ms) to leave what isn't as it should be though nobody asked for anything; 0: it is repaired
   * now. `wasWell`: it was in effect, so others changed it; else it is on its way, or rests.
   */
  rest(key: string, wasWell: boolean): number {
    const now = this.#now()
    const known = this.#made.get(key)
    if (!wasWell && known?.until === undefined) return 0
    const made =
      known === undefined || now - known.last >= CALM ? { count: 0, last: now, until: now } : known
    this.#made.set(key, made)
    made.until ??= made.last + pauseAfter(made.count)
    if (made.until > now) return made.until - now
    made.count += 1
    made.last = now
    made.until = undefined
    return 0
  }

  forget(key: string): void {
    this.#made.delete(key)
  }
}

const pauseAfter = (repairs: number): number =>
  repairs < PROMPT ? 0 : Math.min(REST.longest, REST.first * 2 ** (repairs - PROMPT))
