import type { Store } from '../db/client.ts'
import {
  forgetWorker,
  LEASE_SECONDS,
  type Lease,
  releaseLease,
  renewLeases,
} from '../domain/placements/leases.ts'
import type { Logger } from './logger.ts'
import type { Observer } from './observer.ts'

/** A lease counts as over this long (ms) before it is: clocks run apart, and calls need to be cut. */
const MARGIN = 1_000
/** A renewal that takes longer (ms) has failed. */
const PATIENCE = 4_000

/** What is done with a lease for as long as it is held. */
type Served = {
  readonly lease: Lease
  /** An operator may have changed what is said of the cluster. */
  renewed(lease: Lease): void
  /** Nothing of it is under way any more once this resolves. */
  close(): Promise<void>
}
type Parts<T> = {
  store: Store
  owner: string
  log: Logger
  /** `signal`: from then on nothing may be written. `mayWrite`: to be asked before each write. */
  begin(lease: Lease, instance: string, signal: AbortSignal, mayWrite: () => boolean): T
  ended(worker: T): Promise<void>
  observer?: Pick<Observer, 'renewed' | 'renewalFailed'>
}
type Held<T> = {
  worker: T
  writing: AbortController
  /** When the lease could be over (ms), of the clock that goes on while a process is paused. */
  term: { until: number }
  expiry: NodeJS.Timeout | undefined
}

/**
 * Holds leases of clusters for one process, and has each served by one worker while it lasts. What the
 * worker writes is cut at the latest when the lease could be over, whatever it is waiting for then.
 */
export class LeaseHolder<T extends Served> {
  readonly #with: Parts<T>
  readonly #held = new Map<string, Held<T>>()
  readonly #stopping = new Map<string, Promise<void>>()
  /** Names of the clusters that are being stopped: one that is registered anew has another id. */
  readonly #ending = new Set<string>()
  #instance: string | undefined
  #renewing: Promise<void> | undefined
  #closed = false

  constructor(parts: Parts<T>) {
    this.#with = parts
  }

  *serving(): Iterable<T> {
    for (const { worker } of this.#held.values()) yield worker
  }

  /** Renews, takes what is free, and lets go of what was lost. Never rejects. */
  renew(): Promise<void> {
    this.#renewing ??= this.#renew().finally(() => {
      this.#renewing = undefined
    })
    return this.#renewing
  }

  /** Ends one worker; the lease, where it is still ours, is free for others then. */
  stop(cluster: string): Promise<void> {
    const held = this.#held.get(cluster)
    if (held === undefined) return this.#stopping.get(cluster) ?? Promise.resolve()
    this.#held.delete(cluster)
    clearTimeout(held.expiry)
    held.writing.abort()
    const { name } = held.worker.lease
    this.#ending.add(name)
    const stopping = this.#end(held.worker).finally(() => {
      this.#stopping.delete(cluster)
      this.#ending.delete(name)
    })
    this.#stopping.set(cluster, stopping)
    return stopping
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#renewing
    await Promise.all([...this.#held.keys()].map((cluster) => this.stop(cluster)))
    await Promise.all(this.#stopping.values())
    await forgetWorker(this.#with.store, this.#with.owner)
  }

  async #renew(): Promise<void> {
    const { store, owner, log } = this.#with
    const begun = performance.now()
    try {
      const { leases, surplus } = await within(PATIENCE, this.#read(store, owner))
      if (this.#closed) return
      const mine = new Map(leases.map((lease) => [lease.cluster, lease]))
      for (const [cluster, { worker }] of this.#held) {
        const lease = mine.get(cluster)
        const same = lease?.epoch === worker.lease.epoch && lease.context === worker.lease.context
        // Not waited for: a cluster that is slow to end delays no renewal.
        if (!same) void this.stop(cluster)
      }
      for (const lease of leases) this.#take(lease, begun)
      // Somebody else has less than its share: the last ones go, and are free once they have ended.
      for (const { cluster } of leases.toReversed().slice(0, surplus)) void this.stop(cluster)
      this.#with.observer?.renewed(this.#held.size)
    } catch (error) {
      this.#with.observer?.renewalFailed()
      // Each lease cuts its worker by itself when it could be over.
      log.warn({ err: error }, 'leases could not be renewed')
    }
  }

  async #read(store: Store, owner: string) {
    if (this.#instance === undefined) {
      const row = await store.prisma.store.findUniqueOrThrow({ where: { id: 1 } })
      this.#instance = row.instance
    }
    return renewLeases(store, owner)
  }

  #take(lease: Lease, begun: number): void {
    const { cluster } = lease
    // One that is still ending is taken up by the next renewal.
    if (this.#ending.has(lease.name) || this.#instance === undefined) return
    // Counted from before it was asked for: the store may have counted from then.
    const until = begun + LEASE_SECONDS * 1000 - MARGIN
    let held = this.#held.get(cluster)
    if (held === undefined) {
      const writing = new AbortController()
      const term = { until }
      const mayWrite = () => !writing.signal.aborted && performance.now() < term.until
      const worker = this.#with.begin(lease, this.#instance, writing.signal, mayWrite)
      held = { worker, writing, term, expiry: undefined }
      this.#held.set(cluster, held)
    } else {
      held.worker.renewed(lease)
    }
    clearTimeout(held.expiry)
    held.term.until = until
    held.expiry = setTimeout(() => void this.stop(cluster), until - performance.now())
  }

  async #end(worker: T): Promise<void> {
    const { store, log, ended } = this.#with
    try {
      await worker.close()
      await ended(worker)
      await releaseLease(store, worker.lease)
    } catch (error) {
      // Then it runs out by itself.
      log.warn({ err: error, cluster: worker.lease.name }, 'a lease could not be given up in order')
    }
  }
}

async function within<R>(milliseconds: number, work: Promise<R>): Promise<R> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer in ${milliseconds} ms`)), milliseconds)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
