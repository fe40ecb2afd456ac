import type { Clock } from './clock.ts'

const CAP_MS = 30_000
/** The first retry is for a reset connection: almost at once, though not all in the same moment. */
const FIRST = { floor: 20, ceiling: 100 }
/** From the second on the ceiling doubles: 0.5, 1, 2 … 30 s. */
const BASE_MS = 500
const FLOOR_MS = 250
/** However attempts end, no more than this many begin within one second. */
const STARTS_PER_SECOND = 5

/**
 * How long to wait after the n-th failure in a row (counted from 1): full jitter under a doubling
 * ceiling, never less than the server asked for.
 */
export function retryDelay(
  failures: number,
  random: () => number,
  retryAfterSeconds: number | undefined,
): number {
  const { floor, ceiling } =
    failures <= 1
      ? FIRST
      : { floor: FLOOR_MS, ceiling: Math.min(CAP_MS, BASE_MS * 2 ** Math.min(failures - 2, 16)) }
  const jittered = floor + random() * (ceiling - floor)
  // Jitter on top of what the server asked for, or all its clients come back in the same moment.
  return retryAfterSeconds === undefined
    ? jittered
    : Math.max(jittered, retryAfterSeconds * 1000 * (1 + 0.2 * random()))
}

/** Spaces the beginnings of calls, so that no fault, of ours or theirs, becomes a storm. */
export class CallPacer {
  readonly #clock: Clock
  readonly #starts: number[] = []

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Waits until one more call may begin. */
  async turn(signal: AbortSignal): Promise<void> {
    const oldest = this.#starts[this.#starts.length - STARTS_PER_SECOND]
    const wait = oldest === undefined ? 0 : oldest + 1000 - this.#clock.now()
    if (wait > 0) await this.#clock.sleep(wait, signal)
    this.#starts.push(this.#clock.now())
    if (this.#starts.length > STARTS_PER_SECOND) this.#starts.shift()
  }
}
