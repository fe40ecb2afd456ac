import type { Cluster, Unreachable } from '../clusters/cluster.ts'
import type { Store } from '../db/client.ts'
import type { Lease } from '../domain/placements/leases.ts'
import type { Outcome, Told } from '../domain/placements/report.ts'
import { type DuePlacement, readPlaced } from '../domain/placements/wanted.ts'
import {
  DATA_PLANE_NAMESPACE,
  NETWORK_RULES,
  type Resource,
  VPC_ATTACHMENTS,
} from '../rules/objects.ts'
import type { Capabilities } from '../rules/wanted.ts'
import { Chores } from './chores.ts'
import { ClusterView } from './clusterView.ts'
import { UNSURE } from './confirmation.ts'
import { DataPlaneSchema } from './dataPlaneSchema.ts'
import { DirtyQueue } from './dirtyQueue.ts'
import { Failures } from './failures.ts'
import { Inventory } from './inventory.ts'
import { LIMITS, type Limits } from './limits.ts'
import type { Logger } from './logger.ts'
import { type Observer, UNOBSERVED } from './observer.ts'
import { Places } from './places.ts'
import type { Prober } from './probe/prober.ts'
import { Probing } from './probe/probing.ts'
import type { Slots } from './probe/slots.ts'
import { Reachability } from './reachability.ts'
import { Reconciler } from './reconciler.ts'
import { Sweep } from './sweep.ts'
import type { Together } from './together.ts'
import { lackOf, NAMESPACE_MISSING, troubleOfFollow } from './trouble.ts'

/**
 * How many load balancers of one cluster are worked at a time, half of them being written; `most`: together
 * with those of which nothing is left but to report.
 */
const AT_ONCE = { concurrency: 32, most: 80 }
/** What couldn't be recorded is tried again after this time (ms). */
const AGAIN = 1_000
/** Without a data plane, what is placed says so again after this time (ms), for what came meanwhile. */
const WITHOUT = 4_000

/** All that the owner of one cluster does there, for as long as it has the lease. */
export class ClusterWorker {
  readonly lease: Lease
  readonly #store: Store
  readonly #log: Logger
  readonly #view: ClusterView
  readonly #inventory: Inventory
  readonly #queue: DirtyQueue
  readonly #probing: Probing
  readonly #limits: Limits
  readonly #sweep: Sweep
  readonly #failures: Failures
  readonly #chores: Chores
  readonly #reach: Reachability
  readonly #schema: DataPlaneSchema
  #servesIPv4: boolean
  #ready = false
  #closed = false
  #sweeping: Promise<void> | undefined

  constructor(options: {
    store: Store
    cluster: Cluster
    lease: Lease
    instance: string
    prober: Prober
    /** How many probes may be under way, over all clusters of the process. */
    probes: Slots
    /** Takes in reports, for all clusters of the process. */
    reports: Together<Told, Outcome>
    log: Logger
    leaseLost: () => void
    observer?: Observer
    /** From then on nothing may be written: the lease could be over. */
    signal: AbortSignal
    limits?: Partial<Limits>
    /** Milliseconds since 1970, by which backends that come and go are held out. */
    now: () => number
  }) {
    const { store, cluster, lease, log } = options
    this.lease = lease
    this.#store = store
    this.#log = log
    this.#limits = { ...LIMITS, ...options.limits }
    this.#servesIPv4 = lease.servesIPv4
    const owner = { cluster: lease.cluster, epoch: lease.epoch }
    this.#chores = new Chores(log)
    this.#reach = new Reachability({
      store,
      owner,
      chores: this.#chores,
      // What was put off meanwhile needn't wait any more.
      back: () => {
        if (this.#ready) void this.#lookAtAll()
      },
    })
    this.#schema = new DataPlaneSchema({
      store,
      cluster,
      owner,
      chores: this.#chores,
      asked: (error) => {
        if (error !== undefined) this.#callFailed(error)
        else if (this.#reach.callsFail) this.#answersAgain()
      },
      appeared: () => this.#hurry(),
    })
    this.#inventory = new Inventory({
      store,
      cluster,
      owner,
      leaseLost: options.leaseLost,
      chores: this.#chores,
      log,
      limits: this.#limits,
      attachments: () => this.#view.attachments,
      failing: (kind, error) => this.#followFailed(kind, error),
      namespaceChanged: (name) => {
        if (name === DATA_PLANE_NAMESPACE && this.#ready) this.#lookForNamespace()
      },
    })
    const touch = (ids: string[]) => {
      if (this.#ready) for (const id of ids) this.#queue.add(id)
    }
    this.#view = new ClusterView(cluster, options.instance, {
      touched: (ids) => {
        if (this.#ready) for (const id of ids) this.#queue.notice(id)
      },
      touchedAll: () => {
        if (this.#ready) void this.#lookAtAll()
      },
      attachmentChanged: (object, previous) => this.#inventory.attachmentChanged(object, previous),
      placeFreed: (key) => places.freed(key),
      roomFreed: () => places.roomFreed(),
      acceptRelist: (known, vanished) => this.#inventory.acceptRelist(known, vanished),
      failing: (kind, error) => {
        if (kind === VPC_ATTACHMENTS) this.#inventory.failing(kind, error)
        this.#followFailed(kind, error)
      },
    })
    const places = new Places({ standing: this.#view, limit: this.#limits.vipRows, touch })
    // Each look says anew when the next one should be.
    const lookAgain = (id: string, after: number) =>
      this.#chores.appoint(id, after, () => this.#queue.add(id))
    this.#failures = new Failures({ store, owner, lookAgain, log, random: Math.random })
    const reconciler = new Reconciler({
      store,
      cluster,
      view: this.#view,
      places,
      owner,
      capabilities: () => this.#capabilities(),
      schemaChanged: () => this.#schema.read(),
      unanswered: (error) => this.#callFailed(error),
      refused: (id, trouble) => this.#reach.placement(id, trouble),
      lookAgain,
      failures: this.#failures,
      caughtUp: (id) => this.#queue.caughtUp(id),
      reports: options.reports,
      teardownPatience: this.#limits.teardownPatience,
      leaseLost: options.leaseLost,
      signal: options.signal,
      unsureUntil: lease.tookOver ? performance.now() + UNSURE : 0,
      log,
      name: lease.name,
      observer: options.observer ?? UNOBSERVED,
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
    this.#queue = new DirtyQueue(AT_ONCE, (id, leave) => reconciler.reconcile(id, leave))
    // Backends are reached by the network, whether or not the cluster's API answers.
    this.#probing = new Probing({
      store,
      owner,
      hasProber: lease.hasProber,
      prober: options.prober,
      slots: options.probes,
      now: options.now,
      leaseLost: options.leaseLost,
      log,
    })
    void this.#begin()
  }

  /** Takes up load balancers that are due; once all that is placed here has been looked at. */
  takeUp(due: readonly DuePlacement[]): void {
    if (!this.#ready) return
    for (const { loadBalancer, asked } of due) this.#queue.add(loadBalancer, { asked })
  }

  /** How many of those taken up wait. */
  get waiting(): number {
    return this.#queue.asked
  }

  /** How many load balancers are worked now; none of a cluster that doesn't answer. */
  get underWay(): number {
    return this.#reach.callsFail ? 0 : this.#queue.running
  }

  /** What an operator says of the cluster may have changed. */
  renewed(lease: Lease): void {
    this.#probing.hasProber = lease.hasProber
    if (lease.inventoryAccepted) void this.#inventory.accept()
    if (lease.sweepAllowed && this.#ready) this.#chores.later(0, () => this.#sweepOnce())
    if (lease.servesIPv4 === this.#servesIPv4) return
    this.#servesIPv4 = lease.servesIPv4
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
    // Whoever began it hears of its failure.
    await this.#sweeping?.catch(() => undefined)
  }

  async #begin(): Promise<void> {
    const known = Promise.all([this.#view.synced(), this.#inventory.synced()])
    const begun = known.then(
      () => true,
      // Closed before all was known: somebody else goes on.
      () => false,
    )
    await this.#chores.untilDone('read the schema', () => this.#schema.demand())
    if (this.#schema.missing) void this.#tellMissing()
    if (!(await begun)) return
    await this.#chores.untilDone('compare the inventory', () => this.#inventory.begin())
    // Before anything is written: what has an unknown owner holds its addresses from here on.
    await this.#chores.untilDone('sweep', () => this.#sweepOnce())
    if (this.#closed) return
    this.#ready = true
    this.#lookForNamespace()
    this.#reach.begun()
    this.#chores.every(this.#limits.rereadSchema, () => this.#schema.read())
    this.#chores.every(this.#limits.ask, () => this.#schema.ask())
    this.#chores.every(this.#limits.sweep, () => this.#sweepOnce())
    await this.#lookAtAll()
    this.#log.info({}, 'the cluster is served')
  }

  /** Without a data plane there is nothing to follow: all that is placed here says so, and waits for one. */
  async #tellMissing(): Promise<void> {
    this.#reach.begun()
    while (!this.#ready && !this.#closed && this.#schema.missing) {
      await this.#lookAtAll()
      await this.#chores.pause(WITHOUT)
    }
  }

  /** Everything that is placed here or left here: some of it may have changed while nobody looked. */
  async #lookAtAll(): Promise<void> {
    await this.#chores.untilDone('read what is placed', async () => {
      const placed = await readPlaced(this.#store, this.lease.cluster)
      for (const id of new Set([...placed, ...this.#view.withTraces()])) this.#queue.add(id)
    })
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

  /** Before all is known nothing can be told but that there is no data plane. */
  #capabilities(): Capabilities {
    const { dialect, sessionAffinity } = this.#schema.seen
    const servesIPv4 = this.#servesIPv4
    return { dialect: this.#ready ? dialect : undefined, sessionAffinity, servesIPv4 }
  }

  #followFailed(kind: Resource, error: Error | undefined): void {
    const isMissing = lackOf(error) === 'SchemaMissing'
    const doubted = kind === NETWORK_RULES && (isMissing || this.#schema.missing)
    if (this.#ready && doubted) void this.#lookForSchema()
    // Without a data plane there is nothing that could be served.
    const served = this.#ready || this.#schema.missing
    this.#reach.tell(kind.plural, error && troubleOfFollow(kind, error, served))
  }

  #lookForNamespace(): void {
    const there = this.#inventory.hasNamespace(DATA_PLANE_NAMESPACE)
    this.#reach.tell('namespace', there ? undefined : NAMESPACE_MISSING)
  }

  async #lookForSchema(): Promise<void> {
    try {
      await this.#schema.read()
    } catch (error) {
      // The watch fails again, and looks again.
      this.#log.warn({ err: error }, 'the schema could not be read')
    }
  }

  #answersAgain(): void {
    this.#reach.calls(undefined)
    this.#hurry()
  }

  /** What waits after failures is tried at once: it may work now. */
  #hurry(): void {
    this.#failures.hurry()
    this.#view.hurry()
    this.#inventory.hurry()
  }

  /** From then on the cluster is asked until it answers: a watch may be silent for minutes. */
  #callFailed(error: Unreachable): void {
    if (this.#closed || this.#reach.callsFail) return
    this.#reach.calls(error)
    const ask = async () => {
      if (!this.#reach.callsFail) return
      try {
        await this.#schema.read()
      } catch {
        this.#chores.later(AGAIN * (0.5 + Math.random()), ask)
      }
    }
    this.#chores.later(AGAIN * Math.random(), ask)
  }
}
