import type { Cluster, Follow } from '../clusters/cluster.ts'
import type { Store } from '../db/client.ts'
import {
  readKnownAttachments,
  recordEndpoints,
  recordVpcs,
  type SeenEndpoint,
  type SeenVpc,
} from '../domain/inventory.ts'
import { addressOfCidr } from '../ipam/address.ts'
import {
  type KubeObject,
  NAMESPACES,
  PROJECT_LABEL,
  VPCS,
  type Vpc,
  type VpcAttachment,
} from '../rules/objects.ts'
import type { Logger } from './logger.ts'

/** Changes that come within this time (ms) are taken in together. */
const TOGETHER = 10
/** A failed intake is tried again after up to this time (ms), for as long as it takes. */
const RETRY = 2_000
/** More than this share of what is known vanishing at once is not believed. */
const BRAKE = 0.3

/**
 * Takes the VPCs and attachments of one cluster into the store. Only attachments that are complete
 * count: in a VPC and on a node. Nothing vanishes because a list failed or came back suspiciously empty.
 */
export class Inventory {
  readonly #store: Store
  readonly #clusterId: string
  readonly #log: Logger
  readonly #vpcs: Follow<Vpc>
  readonly #namespaces: Follow<KubeObject>
  readonly #dirtyVpcs = new Set<string>()
  /** By uid: what it carries now; undefined: it is gone. */
  readonly #dirtyAttachments = new Map<string, VpcAttachment | undefined>()
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> | undefined
  #closed = false

  constructor(options: { store: Store; cluster: Cluster; clusterId: string; log: Logger }) {
    this.#store = options.store
    this.#clusterId = options.clusterId
    this.#log = options.log
    const acceptRelist = (known: number, vanished: number) => vanished <= known * BRAKE
    this.#namespaces = options.cluster.follow<KubeObject>(
      NAMESPACES,
      {},
      {
        acceptRelist,
        changed: (object, previous) => {
          const project = (namespace: KubeObject | undefined) =>
            namespace?.metadata.labels?.[PROJECT_LABEL]
          if (project(object) === project(previous)) return
          const name = (object ?? previous)?.metadata.name
          for (const [key, vpc] of this.#vpcs.objects) {
            if (vpc.metadata.namespace === name) this.#dirtyVpcs.add(key)
          }
          this.#wake()
        },
      },
    )
    this.#vpcs = options.cluster.follow<Vpc>(
      VPCS,
      {},
      {
        acceptRelist,
        changed: (object) => {
          if (object === undefined) return
          this.#dirtyVpcs.add(`${object.metadata.namespace}/${object.metadata.name}`)
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
    if (before !== undefined && before !== now) this.#dirtyAttachments.set(before, undefined)
    if (object !== undefined && now !== undefined) this.#dirtyAttachments.set(now, object)
    this.#wake()
  }

  /**
   * What the store knows of this cluster and the cluster doesn't show any more, found at the start;
   * not believed where it is a large part.
   */
  async forgetVanished(attachments: Iterable<VpcAttachment>): Promise<void> {
    const known = await readKnownAttachments(this.#store, this.#clusterId)
    const present = new Set([...attachments].map(({ metadata }) => metadata.uid))
    const vanished = known.filter((uid) => !present.has(uid))
    if (vanished.length === 0) return
    if (vanished.length > known.length * BRAKE) {
      this.#log.warn(
        { known: known.length, vanished: vanished.length },
        'too many attachments vanished at once to be believed; their endpoints are kept',
      )
      return
    }
    for (const uid of vanished) this.#dirtyAttachments.set(uid, undefined)
    this.#wake()
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    await Promise.all([this.#vpcs.close(), this.#namespaces.close(), this.#running])
  }

  #wake(after = TOGETHER): void {
    if (this.#closed || this.#timer !== undefined || this.#running !== undefined) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#running = this.#takeIn().then((retry) => {
        this.#running = undefined
        if (this.#dirtyVpcs.size + this.#dirtyAttachments.size > 0) {
          this.#wake(retry ? Math.random() * RETRY : TOGETHER)
        }
      })
    }, after)
  }

  /** Answers whether it failed. */
  async #takeIn(): Promise<boolean> {
    const vpcs = [...this.#dirtyVpcs]
    const attachments = new Map(this.#dirtyAttachments)
    this.#dirtyVpcs.clear()
    this.#dirtyAttachments.clear()
    try {
      await recordVpcs(
        this.#store,
        vpcs.flatMap((key) => this.#seenVpc(this.#vpcs.objects.get(key)) ?? []),
      )
      const endpoints = [...attachments.values()].flatMap((each) => endpointsOf(each))
      await recordEndpoints(this.#store, this.#clusterId, [...attachments.keys()], endpoints)
      return false
    } catch (error) {
      this.#log.warn({ err: error }, 'the inventory could not be taken in; it is tried again')
      for (const key of vpcs) this.#dirtyVpcs.add(key)
      for (const [uid, attachment] of attachments) {
        if (!this.#dirtyAttachments.has(uid)) this.#dirtyAttachments.set(uid, attachment)
      }
      return true
    }
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

/** The project that a label's value names; undefined: nobody's. */
export function projectOf(label: string | undefined): string | undefined {
  return /^cluster-(.+)$/.exec(label ?? '')?.[1]
}

/** The addresses of an attachment that is complete. What isn't an address is left out. */
export function endpointsOf(attachment: VpcAttachment | undefined): SeenEndpoint[] {
  const { vpc, vpcAttachment, node } = attachment?.status ?? {}
  const { uid, namespace, name } = attachment?.metadata ?? {}
  if (!attachment || !vpc || !vpcAttachment || !node || !uid || !namespace || !name) return []
  const { addresses = [], mode } = attachment.spec.interface
  return addresses.flatMap((cidr) => {
    const parsed = addressOfCidr(cidr)
    if ('code' in parsed) return []
    return {
      attachmentUid: uid,
      attachmentNamespace: namespace,
      attachmentName: name,
      attachmentRef: vpcAttachment,
      vpcRef: vpc,
      address: parsed.address,
      node,
      egressKind: mode === 'Hypervisor' || mode === 'HypervisorDeclared' ? 'tap' : 'veth',
    }
  })
}
