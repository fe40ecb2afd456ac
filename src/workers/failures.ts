import { ApiFailure } from '../clusters/cluster.ts'
import type { Store } from '../db/client.ts'
import type { Ownership } from '../domain/placements/ownership.ts'
import { postponePlacement } from '../domain/placements/report.ts'
import type { Logger } from './logger.ts'

/** A failing placement is tried again after up to this many seconds. */
const LONGEST_DELAY = 60

type Parts = {
  store: Store
  owner: Ownership
  /** Has a load balancer looked at again after a while (ms). */
  lookAgain: (loadBalancer: string, after: number) => void
  log: Logger
  random: () => number
}

/** Has what failed tried again, each time later where it fails on. */
export class Failures {
  readonly #with: Parts
  /** By load balancer: how often in a row it failed. */
  readonly #attempts = new Map<string, number>()

  constructor(parts: Parts) {
    this.#with = parts
  }

  /** It didn't fail this time, or isn't there any more. */
  forget(loadBalancer: string): void {
    this.#attempts.delete(loadBalancer)
  }

  /** What they failed of may be over: whoever fails again has not failed before. */
  hurry(): void {
    this.#attempts.clear()
  }

  /** Never rejects. `asked`: what it was about; 0: not known. */
  async postpone(loadBalancer: string, asked: number, error: unknown): Promise<void> {
    const { store, owner, random, log } = this.#with
    const attempts = (this.#attempts.get(loadBalancer) ?? 0) + 1
    this.#attempts.set(loadBalancer, attempts)
    const retryAfter = error instanceof ApiFailure ? (error.retryAfterSeconds ?? 0) : 0
    const delaySeconds = Math.max(
      retryAfter,
      random() * Math.min(0.2 * 2 ** attempts, LONGEST_DELAY),
    )
    const message = error instanceof Error ? error.message : String(error)
    // Whatever the cause was, it is looked at again: what the watch told is told once, and the store
    // may be away.
    this.#with.lookAgain(loadBalancer, delaySeconds * 1000)
    try {
      await postponePlacement(store, owner, loadBalancer, { asked, message, delaySeconds })
    } catch (failure) {
      log.warn({ err: failure, loadBalancer }, 'a placement could not be put off')
    }
  }
}
