/** With fewer failing backends, or over fewer load balancers, it may well be them. */
const BACKENDS = 10
const LOAD_BALANCERS = 3

/**
 * Whether failures are to be believed. When backends of many load balancers fail and none succeeds, what
 * fails is more likely here than there. Instants are milliseconds of one monotonic clock.
 */
export class Trust {
  #lastSuccess = Number.NEGATIVE_INFINITY
  /** The load balancers of the backends whose last probe failed. */
  readonly #failing = new Map<string, string>()
  readonly #failingOf = new Map<string, number>()

  /** How a backend's probe that ended at `at` went. */
  note(backend: string, loadBalancer: string, ok: boolean, at: number): void {
    if (ok) {
      this.#lastSuccess = at
      this.forget(backend)
    } else if (!this.#failing.has(backend)) {
      this.#failing.set(backend, loadBalancer)
      this.#failingOf.set(loadBalancer, (this.#failingOf.get(loadBalancer) ?? 0) + 1)
    }
  }

  /** The backend isn't probed any more. */
  forget(backend: string): void {
    const loadBalancer = this.#failing.get(backend)
    if (loadBalancer === undefined) return
    this.#failing.delete(backend)
    const left = (this.#failingOf.get(loadBalancer) ?? 1) - 1
    if (left === 0) this.#failingOf.delete(loadBalancer)
    else this.#failingOf.set(loadBalancer, left)
  }

  /** Whether a backend that has failed since an instant is to be believed to be the one that fails. */
  believes(since: number): boolean {
    return (
      this.#lastSuccess >= since ||
      this.#failing.size < BACKENDS ||
      this.#failingOf.size < LOAD_BALANCERS
    )
  }
}
