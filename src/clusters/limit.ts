/**
 * Who ends with a signal. It has one listener for all of them: adding or removing another one goes
 * through all that there are, and every call of a cluster ends with the same signal.
 */
const endingWith = new WeakMap<AbortSignal, Set<Limit>>()

function endsWith(signal: AbortSignal): Set<Limit> {
  const known = endingWith.get(signal)
  if (known !== undefined) return known
  const ending = new Set<Limit>()
  endingWith.set(signal, ending)
  signal.addEventListener(
    'abort',
    () => {
      for (const limit of ending) limit.cut(signal.reason)
    },
    { once: true },
  )
  return ending
}

/** The caller's signal and a deadline in one. Listeners and timers go when the call ends. */
export class Limit {
  readonly ms: number
  readonly #controller = new AbortController()
  readonly #together: Set<Limit> | undefined
  readonly #timer: NodeJS.Timeout
  #passed = false

  constructor(ms: number, outer: AbortSignal | undefined) {
    this.ms = ms
    this.#timer = setTimeout(() => {
      this.#passed = true
      this.cut()
    }, ms)
    if (outer?.aborted) this.cut(outer.reason)
    else if (outer !== undefined) this.#together = endsWith(outer).add(this)
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  get passed(): boolean {
    return this.#passed
  }

  /** The deadline is met. */
  lift(): void {
    clearTimeout(this.#timer)
  }

  /** Ends the call now. */
  cut(reason?: unknown): void {
    this.#controller.abort(reason)
  }

  /** The call is over. */
  end(): void {
    this.lift()
    this.#together?.delete(this)
  }
}
