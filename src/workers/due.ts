import type { Store } from '../db/client.ts'
import { readDue } from '../domain/placements/wanted.ts'
import type { Logger } from './logger.ts'

/** How many due placements of a cluster are taken up at a time. */
const BATCH = 256

type Served = {
  readonly lease: { cluster: string }
  /** Takes up load balancers that are due. */
  takeUp(loadBalancers: readonly string[]): void
}

/**
 * Hands what is due to those who serve the clusters: one query for all clusters of the process, since every
 * hint and every second asks.
 */
export class Due {
  readonly #store: Store
  readonly #log: Logger
  readonly #serving: () => Iterable<Served>
  #again = false
  #looking: Promise<void> | undefined
  #closed = false

  constructor(parts: { store: Store; log: Logger; serving: () => Iterable<Served> }) {
    this.#store = parts.store
    this.#log = parts.log
    this.#serving = parts.serving
  }

  /** Looks now, or once more after the look that is under way. */
  look(): void {
    if (this.#closed) return
    this.#again = true
    this.#looking ??= this.#lookOnce().finally(() => {
      this.#looking = undefined
      if (this.#again) this.look()
    })
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#looking
  }

  async #lookOnce(): Promise<void> {
    this.#again = false
    const serving = [...this.#serving()]
    if (serving.length === 0) return
    try {
      const clusters = serving.map(({ lease }) => lease.cluster)
      const due = await readDue(this.#store, clusters, BATCH)
      for (const one of serving) one.takeUp(due.get(one.lease.cluster) ?? [])
    } catch (error) {
      // The store is away; the next hint or second looks again.
      this.#log.warn({ err: error }, 'what is due could not be read')
    }
  }
}
