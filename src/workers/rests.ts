/** So long (ms) a load balancer rests. */
const HOLD = 1_000

/**
 * Each change of a backend set moves flows. So after one that health or the inventory made a load balancer
 * rests, and what comes of them meanwhile goes together then. Instants are those of `performance.now`.
 */
export class Rests {
  readonly #hold: number
  /** By load balancer. */
  readonly #until = new Map<string, number>()

  constructor(hold = HOLD) {
    this.#hold = hold
  }

  /** These were changed just now. */
  begin(loadBalancers: string[]): void {
    const now = performance.now()
    for (const [id, until] of this.#until) if (until <= now) this.#until.delete(id)
    for (const id of loadBalancers) this.#until.set(id, now + this.#hold)
  }

  /** Until when it rests; it may be over. */
  until(loadBalancer: string): number {
    return this.#until.get(loadBalancer) ?? Number.NEGATIVE_INFINITY
  }

  /** Those that rest now. */
  resting(): string[] {
    const now = performance.now()
    return [...this.#until].flatMap(([id, until]) => (until > now ? id : []))
  }
}
