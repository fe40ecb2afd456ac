import type { Cluster, Follow } from '../clusters/cluster.ts'
import type { Store } from '../db/client.ts'
import { takeInventoryAcceptance } from '../domain/clusters.ts'
import {
  readKnownAttachments,
  readSightings,
  recordEndpoints,
  recordSightings,
  type SeenVpc,
} from '../domain/inventory.ts'
import { LeaseLost, type Ownership } from '../domain/placements/ownership.ts'
import {
  type KubeObject,
  NAMESPACES,
  PROJECT_LABEL,
  type Resource,
  VPC_ATTACHMENTS,
  VPCS,
  type Vpc,
  type VpcAttachment,
} from '../rules/objects.ts'
import { RelistBrake, verdictOn } from './brake.ts'
import type { Chores } from './chores.ts'
import { InventoryWorth } from './inventoryWorth.ts'
import type { Limits } from './limits.ts'
import type { Logger } from './logger.ts'
import { Pacing } from './pacing.ts'
import { endpointsOf, isUp, projectOf, uidsOfUp } from './seen.ts'
import { Vanishing } from './vanishing.ts'

/** Changes that come within this time (ms) are taken in together. */
const TOGETHER = 10
/** So many attachments are taken in by one transaction: a thousand take some 100 ms. */
const BATCH = 1_000
/** A failed intake is tried again after up to this time (ms), for as long as it takes. */
const RETRY = 2_000

/**
 * Takes the VPCs and attachments of one cluster into the store. Only attachments that are complete
 * count: in a VPC and on a node. Nothing vanishes because a list failed or came back suspiciously empty.
 */
export class Inventory {
  readonly #store: Store
  readonly #cluster: Cluster
  readonly #owner: Ownership
  readonly #leaseLost: () => void
  readonly #log: Logger
  readonly #attachments: () => ReadonlyMap<string, VpcAttachment>
  readonly #vpcs: Follow<Vpc>
  readonly #namespaces: Follow<KubeObject>
  readonly #brakes = {
    vpcs: new RelistBrake(),
    namespaces: new RelistBrake(),
    attachments: new RelistBrake(),
  }
  readonly #vanishing: Vanishing
  readonly #pacing: Pacing
  readonly #dirtyVpcs = new Set<string>()
  /** By uid: what it carries now; undefined: it is gone. */
  readonly #dirtyAttachments = new Map<string, VpcAttachment | undefined>()
  /** Load balancers with endpoints that were recorded, but whose placements couldn't be derived yet. */
  readonly #underived = new Set<string>()
  /** What a list that was believed lacks is gone, whatever its share. */
  #believing = false
  readonly #worth: InventoryWorth
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> | undefined
  #ready = false
  #closed = false

  constructor(options: {
    store: Store
    cluster: Cluster
    owner: Ownership
    leaseLost: () => void
    chores: Chores
    log: Logger
    limits: Pick<Limits, 'settle' | 'confirm'>
    /** All of the cluster, by `namespace/name`. */
    attachments: () => ReadonlyMap<string, VpcAttachment>
    /** Its own lists or watches failed; undefined: it works again. */
    failing: (kind: Resource, error: Error | undefined) => void
    /** A namespace came, went, or changed. */
    namespaceChanged: (name: string) => void
  }) {
    const { cluster } = options
    this.#store = options.store
    this.#cluster = cluster
    this.#owner = options.owner
    this.#leaseLost = options.leaseLost
    this.#log = options.log
    this.#attachments = options.attachments
    this.#worth = new InventoryWorth(options)
    this.#vanishing = new Vanishing({
      ...options.limits,
      present: () => uidsOfUp(this.#attachments().values()).length,
      look: () => this.#look(),
      believe: (uids) => this.#forget(uids),
      changed: () => this.#tell(),
      failed: (error) => this.#log.warn({ err: error }, 'attachments could not be looked at again'),
    })
    this.#pacing = new Pacing({
      store: this.#store,
      cluster: this.#owner.cluster,
      release: (kept) => this.#putBack(kept),
    })
    const failing = (kind: Resource) => (error: Error | undefined) => {
      this.failing(kind, error)
      options.failing(kind, error)
    }
    const gate = (brake: RelistBrake) => (known: number, vanished: number) =>
      this.#believes(brake, known, vanished)
    this.#namespaces = cluster.follow<KubeObject>(
      NAMESPACES,
      {},
      {
        acceptRelist: gate(this.#brakes.namespaces),
        failing: failing(NAMESPACES),
        changed: (object, previous) => {
          const changed = (object ?? previous)?.metadata.name
          if (changed !== undefined) options.namespaceChanged(changed)
          const project = (namespace: KubeObject | undefined) =>
            namespace?.metadata.labels?.[PROJECT_LABEL]
          if (project(object) === project(previous)) return
          for (const [key, vpc] of this.#vpcs.objects) {
            if (vpc.metadata.namespace === changed) this.#dirtyVpcs.add(key)
          }
          this.#wake()
        },
      },
    )
    this.#vpcs = cluster.follow<Vpc>(
      VPCS,
      {},
      {
        acceptRelist: gate(this.#brakes.vpcs),
        failing: failing(VPCS),
        changed: (object, previous) => {
          const { namespace, name } = (object ?? previous)?.metadata ?? {}
          this.#dirtyVpcs.add(`${namespace}/${name}`)
          this.#wake()
        },
      },
    )
  }

  async synced(): Promise<void> {
    await Promise.all([this.#vpcs.synced, this.#namespaces.synced])
  }

  /** An attachment as the view follows it. */
  attachmentChanged(object: VpcAttachment | undefined, previous: VpcAttachment | undefined): void {
    const before = previous?.metadata.uid
    const now = object?.metadata.uid
    if (before !== undefined && before !== now) {
      if (object === undefined && !this.#believing)
        this.#vanishing.gone({ uid: before, key: keyOf(previous) })
      else this.#dirtyAttachments.set(before, undefined)
    }
    if (object !== undefined && now !== undefined) {
      // One that isn't up yet takes nothing's place.
      if (isUp(object)) {
        this.#dirtyAttachments.set(now, object)
        this.#vanishing.shown({ uid: now, key: keyOf(object) })
      } else if (before === now && isUp(previous)) {
        // As in a definition that lost a field: what says nothing any more is doubted like what is gone.
        this.#vanishing.gone({ uid: now, key: keyOf(object) })
      }
    }
    this.#wake()
  }

  /** Whether there is a namespace, and will be. Known once it is synced. */
  hasNamespace(name: string): boolean {
    const namespace = this.#namespaces.objects.get(name)
    return namespace !== undefined && namespace.metadata.deletionTimestamp === undefined
  }

  /** Whether a list of attachments is believed that lacks `vanished` of those that were known. */
  acceptRelist(known: number, vanished: number): boolean {
    return this.#believes(this.#brakes.attachments, known, vanished)
  }

  /**
   * Begins to take in, once all is known: what comes from different lists belongs together. What the
   * store knows of this cluster and the cluster doesn't show any more vanished while nobody looked.
   */
  async begin(): Promise<void> {
    const known = await readKnownAttachments(this.#store, this.#owner.cluster)
    const present = new Set(uidsOfUp(this.#attachments().values()))
    const vanished = known.filter(({ uid }) => !present.has(uid))
    const replaced = vanished.filter(({ key }) => isUp(this.#attachments().get(key)))
    this.#forget(replaced.map(({ uid }) => uid))
    this.#vanishing.judge(
      known.length,
      vanished.filter((each) => !replaced.includes(each)),
    )
    const sightings = (await readSightings(this.#store, this.#owner.cluster)).map(
      ({ namespace, name }) => `${namespace}/${name}`,
    )
    const unseen = sightings.filter((key) => !this.#vpcs.objects.has(key))
    if (verdictOn(sightings.length, unseen.length) === 'believe')
      for (const key of unseen) this.#dirtyVpcs.add(key)
    this.#ready = true
    this.#lookAtLabels()
    this.#worth.known()
    this.#tell()
    this.#wake()
  }

  /** An operator says that what the cluster shows now is right. */
  async accept(): Promise<void> {
    try {
      if (!(await takeInventoryAcceptance(this.#store, this.#owner.cluster))) return
      for (const brake of Object.values(this.#brakes)) brake.accept()
      const present = await this.#look()
      const known = await readKnownAttachments(this.#store, this.#owner.cluster)
      this.#vanishing.accept()
      this.#forget(known.flatMap(({ uid }) => (present.has(uid) ? [] : uid)))
      this.#brakes.attachments.held = 0
      this.#tell()
    } catch (error) {
      this.#log.warn({ err: error }, 'what an operator accepted could not be looked at')
    }
  }

  /** What waits after a failure is tried at once. */
  hurry(): void {
    this.#vpcs.hurry()
    this.#namespaces.hurry()
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    this.#worth.close()
    this.#pacing.close()
    await Promise.all([
      this.#vpcs.close(),
      this.#namespaces.close(),
      this.#vanishing.close(),
      this.#running,
    ])
  }

  #believes(brake: RelistBrake, known: number, vanished: number): boolean {
    const believed = brake.believes(known, vanished)
    this.#believing = believed
    queueMicrotask(() => {
      this.#believing = false
    })
    this.#tell()
    return believed
  }

  async #look(): Promise<Set<string>> {
    return new Set(uidsOfUp(await this.#cluster.list<VpcAttachment>(VPC_ATTACHMENTS)))
  }

  /** But for what is newer by now. */
  #putBack(attachments: ReadonlyMap<string, VpcAttachment | undefined>): void {
    for (const [uid, attachment] of attachments) {
      if (!this.#dirtyAttachments.has(uid)) this.#dirtyAttachments.set(uid, attachment)
    }
    this.#wake()
  }

  #forget(uids: string[]): void {
    for (const uid of uids) this.#dirtyAttachments.set(uid, undefined)
    this.#wake()
  }

  /** The list or watch of a kind that it rests on failed; undefined: it works again. */
  failing(kind: Resource, error: Error | undefined): void {
    this.#worth.failing(kind, error)
  }

  #tell(): void {
    const brakes = Object.values(this.#brakes)
    this.#worth.tell(this.#vanishing.held + brakes.reduce((sum, { held }) => sum + held, 0))
  }

  #wake(after = TOGETHER): void {
    if (!this.#ready || this.#closed) return
    if (this.#timer !== undefined || this.#running !== undefined) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#running = this.#takeIn().then((retry) => {
        this.#running = undefined
        if (this.#dirtyVpcs.size + this.#dirtyAttachments.size > 0) {
          this.#wake(retry ? Math.random() * RETRY : 0)
        }
      })
    }, after)
  }

  /** Answers whether it failed. */
  async #takeIn(): Promise<boolean> {
    const vpcs = [...this.#dirtyVpcs]
    const attachments = new Map([...this.#dirtyAttachments].slice(0, BATCH))
    this.#dirtyVpcs.clear()
    for (const uid of attachments.keys()) this.#dirtyAttachments.delete(uid)
    try {
      await this.#pacing.keepBack(attachments)
      await recordSightings(
        this.#store,
        this.#owner,
        vpcs.map((key) => {
          const [namespace = '', name = ''] = key.split('/')
          return { namespace, name, vpc: this.#seenVpc(this.#vpcs.objects.get(key)) }
        }),
      )
      if (vpcs.length > 0) this.#lookAtLabels()
      const endpoints = [...attachments.values()].flatMap((each) => endpointsOf(each))
      const uids = [...attachments.keys()]
      const left = this.#underived
      await recordEndpoints(this.#store, this.#owner, uids, endpoints, left)
      this.#pacing.takenIn(uids)
      return false
    } catch (error) {
      if (error instanceof LeaseLost) this.#leaseLost()
      this.#log.warn({ err: error }, 'the inventory could not be taken in; it is tried again')
      for (const key of vpcs) this.#dirtyVpcs.add(key)
      this.#putBack(attachments)
      return true
    }
  }

  /** All at once is no tenant's doing. */
  #lookAtLabels(): void {
    const seen = [...this.#vpcs.objects.values()].flatMap((vpc) => this.#seenVpc(vpc) ?? [])
    this.#worth.labels(seen.length > 0 && seen.every(({ project }) => project === undefined))
  }

  #seenVpc(vpc: Vpc | undefined): SeenVpc | undefined {
    const ref = vpc?.status?.vpc
    if (vpc === undefined || ref === undefined) return undefined
    const { name, namespace, labels } = vpc.metadata
    const label =
      labels?.[PROJECT_LABEL] ??
      this.#namespaces.objects.get(namespace ?? '')?.metadata.labels?.[PROJECT_LABEL]
    return { ref, name, project: projectOf(label) }
  }
}

const keyOf = (object: KubeObject | undefined): string =>
  `${object?.metadata.namespace}/${object?.metadata.name}`
