import { setTimeout as delay } from 'node:timers/promises'
import type { Store } from '../db/client.ts'
import { type DuePlacement, readDue } from '../domain/placements/wanted.ts'
import type { Logger } from './logger.ts'

/** How many due placements of a cluster are taken up at a time. */
const BATCH = 256
/** With so many taken up a cluster has enough to do: what is due besides is due later. */
const ENOUGH = 64
/** One look begins at least so long (ms) after the one before: under load every report is a hint. */
const APART = 10

type Served = {
  readonly lease: { cluster: string }
  /** How many of those taken up wait. */
  readonly waiting: number
  /** Takes up load balancers that are due. */
  takeUp(due: readonly DuePlacement[]): void
}

/**
 * Hands what is due to those who serve the clusters: one query for all clusters of the process, since every
 * hint and every second asks.
 */
export class Due {
  readonly #store: Store
  readonly #log: Logger
  readonly #serving: () => Iterable<Served>
  readonly #closing = new AbortController()
  #again = false
  #last = Number.NEGATIVE_INFINITY
  #looking: Promise<void> | undefined

  constructor(parts: { store: Store; log: Logger; serving: () => Iterable<Served> }) {
    this.#store = parts.store
    this.#log = parts.log
    this.#serving = parts.serving
  }

  /** Looks now, or once more after the look that is under way. */
  look(): void {
    if (this.#closing.signal.aborted) return
    this.#again = true
    this.#looking ??= this.#lookOnce().finally(() => {
      this.#looking = undefined
      if (this.#again) this.look()
    })
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#looking
  }

  async #lookOnce(): Promise<void> {
    const { signal } = this.#closing
    const rest = this.#last + APART - performance.now()
    // Cut short by the end.
    if (rest > 0) await delay(rest, undefined, { signal }).catch(() => undefined)
    if (signal.aborted) return
    this.#last = performance.now()
    this.#again = false
    const serving = [...this.#serving()].filter(({ waiting }) => waiting < ENOUGH)
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
