import { readCapabilities } from '../clusters/capabilities.ts'
import { ApiFailure, type Cluster, Unreachable } from '../clusters/cluster.ts'
import type { Store } from '../db/client.ts'
import { recordCapabilities } from '../domain/clusters.ts'
import type { Lease } from '../domain/placements/leases.ts'
import { readDue, readPlaced } from '../domain/placements/wanted.ts'
import type { Capabilities } from '../rules/wanted.ts'
import { Chores } from './chores.ts'
import { ClusterView } from './clusterView.ts'
import { DirtyQueue } from './dirtyQueue.ts'
import { Inventory } from './inventory.ts'
import { LIMITS, type Limits } from './limits.ts'
import type { Logger } from './logger.ts'
import { type Observer, UNOBSERVED } from './observer.ts'
import { Places } from './places.ts'
import type { Prober } from './probe/prober.ts'
import { Probing } from './probe/probing.ts'
import type { Slots } from './probe/slots.ts'
import { Reachability } from './reachability.ts'
import { Reconciler, UNSURE } from './reconciler.ts'
import { Sweep } from './sweep.ts'

/** How many load balancers of one cluster are worked at a time. */
const CONCURRENCY = 16
/** How many due placements are taken up at a time. */
const BATCH = 256
/** What couldn't be recorded is tried again after this time (ms). */
const AGAIN = 1_000
/**
 * That there is no NetworkRule is believed when a reading this much later (ms) agrees: for about a second
 * after an API server's start it doesn't serve what it has (measured on 1.36.3).
 */
const AGREEING = 4_000

/** All that the owner of one cluster does there, for as long as it has the lease. */
export class ClusterWorker {
  readonly lease: Lease
  readonly #store: Store
  readonly #cluster: Cluster
  readonly #log: Logger
  readonly #view: ClusterView
  readonly #inventory: Inventory
  readonly #queue: DirtyQueue
  readonly #probing: Probing
  readonly #limits: Limits
  readonly #sweep: Sweep
  readonly #chores: Chores
  readonly #reach: Reachability
  #capabilities: Capabilities
  #ready = false
  #closed = false
  /** The schema was read, and is believed. */
  #schemaKnown = false
  /** Since when (ms) there seems to be no NetworkRule. */
  #missingSince: number | undefined
  #readingAgain = false
  #looking: Promise<void> | undefined
  #reading: Promise<void> | undefined
  #lookAgain = false
  #sweeping: Promise<void> | undefined

  constructor(options: {
    store: Store
    cluster: Cluster
    lease: Lease
    instance: string
    prober: Prober
    /** How many probes may be under way, over all clusters of the process. */
    probes: Slots
    log: Logger
    leaseLost: () => void
    observer?: Observer
    /** From then on nothing may be written: the lease could be over. */
    signal: AbortSignal
    limits?: Partial<Limits>
  }) {
    const { store, cluster, lease, log } = options
    this.lease = lease
    this.#store = store
    this.#cluster = cluster
    this.#log = log
    this.#limits = { ...LIMITS, ...options.limits }
    this.#capabilities = {
      dialect: undefined,
      sessionAffinity: false,
      servesIPv4: lease.servesIPv4,
    }
    const clusterId = lease.cluster
    this.#chores = new Chores(log)
    this.#reach = new Reachability({
      store,
      cluster: clusterId,
      chores: this.#chores,
      // What was put off meanwhile needn't wait any more.
      back: () => {
        if (this.#ready) void this.#lookAtAll()
      },
    })
    this.#inventory = new Inventory({
      store,
      cluster,
      clusterId,
      log,
      limits: this.#limits,
      attachments: () => this.#view.attachments,
    })
    const touch = (ids: string[]) => {
      if (this.#ready) for (const id of ids) this.#queue.add(id)
    }
    this.#view = new ClusterView(cluster, options.instance, {
      touched: touch,
      touchedAll: () => {
        if (this.#ready) void this.#lookAtAll()
      },
      attachmentChanged: (object, previous) => this.#inventory.attachmentChanged(object, previous),
      placeFreed: (key) => places.freed(key),
      roomFreed: () => places.roomFreed(),
      attachmentsFailing: (error) => this.#inventory.attachmentsFailing(error),
      acceptRelist: (known, vanished) => this.#inventory.acceptRelist(known, vanished),
      failing: (error) => this.#watchFailed(error),
    })
    const places = new Places({ standing: this.#view, limit: this.#limits.vipRows, touch })
    const owner = { cluster: clusterId, epoch: lease.epoch }
    const reconciler = new Reconciler({
      store,
      cluster,
      view: this.#view,
      places,
      owner,
      // Before all is known nothing can be told but that there is no data plane.
      capabilities: () =>
        this.#ready ? this.#capabilities : { ...this.#capabilities, dialect: undefined },
      schemaChanged: () => this.#readCapabilities(),
      unanswered: (error) => this.#callFailed(error),
      // Each look says anew when the next one should be.
      lookAgain: (id, after) => this.#chores.appoint(id, after, () => this.#queue.add(id)),
      teardownPatience: this.#limits.teardownPatience,
      leaseLost: options.leaseLost,
      signal: options.signal,
      unsureUntil: lease.tookOver ? performance.now() + UNSURE : 0,
      log,
      name: lease.name,
      observer: options.observer ?? UNOBSERVED,
      random: Math.random,
      now: () => new Date(),
    })
    this.#sweep = new Sweep({
      store,
      cluster,
      view: this.#view,
      instance: options.instance,
      owner,
      signal: options.signal,
      log,
    })
    this.#queue = new DirtyQueue(CONCURRENCY, (id) => reconciler.reconcile(id))
    // Backends are reached by the network, whether or not the cluster's API answers.
    this.#probing = new Probing({
      store,
      owner,
      hasProber: lease.hasProber,
      prober: options.prober,
      slots: options.probes,
      leaseLost: options.leaseLost,
      log,
    })
    void this.#begin()
  }

  /** Takes up what is due, now. Called on every hint and every second. */
  look(): void {
    if (!this.#ready || this.#closed) return
    this.#lookAgain = true
    this.#looking ??= this.#takeUp().finally(() => {
      this.#looking = undefined
      if (this.#lookAgain) this.look()
    })
  }

  /** What an operator says of the cluster may have changed. */
  renewed(lease: Lease): void {
    this.#probing.hasProber = lease.hasProber
    if (lease.inventoryAccepted) void this.#inventory.accept()
    if (lease.sweepAllowed && this.#ready) this.#chores.later(0, () => this.#sweepOnce())
    if (lease.servesIPv4 === this.#capabilities.servesIPv4) return
    this.#capabilities = { ...this.#capabilities, servesIPv4: lease.servesIPv4 }
    if (this.#ready) void this.#lookAtAll()
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#chores.close()
    this.#reach.close()
    await Promise.all([
      this.#view.close(),
      this.#inventory.close(),
      this.#queue.close(),
      this.#probing.close(),
    ])
    await Promise.all([this.#looking, this.#sweeping])
  }

  async #begin(): Promise<void> {
    const known = Promise.all([this.#view.synced(), this.#inventory.synced()])
    const begun = known.then(
      () => true,
      // Closed before all was known: somebody else goes on.
      () => false,
    )
    await this.#chores.untilDone('read the schema', () => this.#demandSchema())
    if (this.#capabilities.dialect === undefined) void this.#tellMissing()
    if (!(await begun)) return
    await this.#chores.untilDone('compare the inventory', () => this.#inventory.begin())
    // Before anything is written: what has an unknown owner holds its addresses from here on.
    await this.#chores.untilDone('sweep', () => this.#sweepOnce())
    if (this.#closed) return
    this.#ready = true
    this.#reach.begun()
    this.#chores.every(this.#limits.rereadSchema, () => this.#readCapabilities())
    this.#chores.every(this.#limits.sweep, () => this.#sweepOnce())
    await this.#lookAtAll()
    this.look()
    this.#log.info({}, 'the cluster is served')
  }

  /** Without a data plane there is nothing to follow: all that is placed here says so, and waits for one. */
  async #tellMissing(): Promise<void> {
    this.#reach.begun()
    while (!this.#ready && !this.#closed && this.#capabilities.dialect === undefined) {
      await this.#lookAtAll()
      await this.#chores.pause(AGREEING)
    }
  }

  /** Everything that is placed here or left here: some of it may have changed while nobody looked. */
  async #lookAtAll(): Promise<void> {
    await this.#chores.untilDone('read what is placed', async () => {
      const placed = await readPlaced(this.#store, this.lease.cluster)
      for (const id of new Set([...placed, ...this.#view.withTraces()])) this.#queue.add(id)
    })
  }

  async #takeUp(): Promise<void> {
    this.#lookAgain = false
    try {
      const due = await readDue(this.#store, this.lease.cluster, BATCH)
      for (const id of due) this.#queue.add(id, { ahead: true })
    } catch (error) {
      // The store is away; the next hint or second looks again.
      this.#log.warn({ err: error }, 'what is due could not be read')
    }
  }

  /** While something is being removed it is looked at again soon: its addresses wait for that. */
  #sweepOnce(): Promise<void> {
    this.#sweeping ??= this.#sweep
      .run()
      .then((unfinished) => {
        if (unfinished) this.#chores.later(AGAIN, () => this.#sweepOnce())
      })
      .finally(() => {
        this.#sweeping = undefined
      })
    return this.#sweeping
  }

  /** One reading serves all who ask for it meanwhile. */
  #readCapabilities(): Promise<void> {
    this.#reading ??= this.#readSchema().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  async #demandSchema(): Promise<void> {
    await this.#readCapabilities()
    if (!this.#schemaKnown) throw new Unreachable('the cluster serves no NetworkRule, or not yet')
  }

  async #readSchema(): Promise<void> {
    const seen = await readCapabilities(this.#cluster).catch((error: unknown) => {
      if (error instanceof Unreachable) this.#callFailed(error)
      throw error
    })
    if (this.#reach.callsFail) this.#reach.calls(undefined)
    if (seen.dialect === undefined) this.#readAgain()
    if (!this.#believes(seen.dialect)) return
    const { dialect, sessionAffinity } = this.#capabilities
    const same = seen.dialect === dialect && seen.sessionAffinity === sessionAffinity
    if (!this.#schemaKnown || !same) await recordCapabilities(this.#store, this.lease.cluster, seen)
    this.#schemaKnown = true
    this.#capabilities = { ...this.#capabilities, ...seen }
  }

  /** A data plane that was there isn't gone because of one look. */
  #believes(dialect: Capabilities['dialect']): boolean {
    if (dialect !== undefined || (this.#schemaKnown && this.#capabilities.dialect === undefined)) {
      this.#missingSince = undefined
      return true
    }
    const now = performance.now()
    this.#missingSince ??= now
    return now - this.#missingSince >= AGREEING
  }

  #readAgain(): void {
    if (this.#readingAgain) return
    this.#readingAgain = true
    this.#chores.later(AGREEING, () => {
      this.#readingAgain = false
      return this.#readCapabilities()
    })
  }

  #watchFailed(error: Error | undefined): void {
    // A cluster that says that it has no such kind answers.
    const missing = error instanceof ApiFailure && error.code === 404
    const unknown = missing || this.#capabilities.dialect === undefined
    if (this.#ready && unknown) void this.#lookForSchema()
    this.#reach.watch(missing ? undefined : error)
  }

  async #lookForSchema(): Promise<void> {
    try {
      await this.#readCapabilities()
    } catch (error) {
      // The watch fails again, and looks again.
      this.#log.warn({ err: error }, 'the schema could not be read')
    }
  }

  /** From then on the cluster is asked until it answers: a watch may be silent for minutes. */
  #callFailed(error: Unreachable): void {
    if (this.#closed || this.#reach.callsFail) return
    this.#reach.calls(error)
    const ask = async () => {
      if (!this.#reach.callsFail) return
      try {
        await this.#readCapabilities()
      } catch {
        this.#chores.later(AGAIN * (0.5 + Math.random()), ask)
      }
    }
    this.#chores.later(AGAIN * Math.random(), ask)
  }
}
