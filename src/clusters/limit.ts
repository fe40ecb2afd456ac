/** The caller's signal and a deadline in one. Listeners and timers go when the call ends. */
export class Limit {
  readonly ms: number
  readonly #controller = new AbortController()
  readonly #outer: AbortSignal | undefined
  readonly #timer: NodeJS.Timeout
  #passed = false

  constructor(ms: number, outer: AbortSignal | undefined) {
    this.ms = ms
    this.#outer = outer
    this.#timer = setTimeout(() => {
      this.#passed = true
      this.#controller.abort()
    }, ms)
    if (outer?.aborted) this.#follow()
    else outer?.addEventListener('abort', this.#follow, { once: true })
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  get passed(): boolean {
    return this.#passed
  }

  readonly #follow = (): void => this.#controller.abort(this.#outer?.reason)

  /** The deadline is met. */
  lift(): void {
    clearTimeout(this.#timer)
  }

  /** Ends the call now. */
  cut(): void {
    this.#controller.abort()
  }

  /** The call is over. */
  end(): void {
    this.lift()
    this.#outer?.removeEventListener('abort', this.#follow)
  }
}
