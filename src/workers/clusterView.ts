import type { Cluster, Follow, FollowHandler } from '../clusters/cluster.ts'
import { canonical, canonicalPrefix, hostPrefix } from '../rules/addresses.ts'
import { loadBalancerOf, servingLoadBalancers } from '../rules/names.ts'
import {
  ADVERTISEMENT_RULE_LABEL,
  BGP_ADVERTISEMENTS,
  type BGPAdvertisement,
  DATA_PLANE_NAMESPACE,
  INSTANCE_LABEL,
  type KubeObject,
  LOAD_BALANCER_LABEL,
  NETWORK_GATEWAYS,
  NETWORK_RULES,
  type NetworkGateway,
  type NetworkRule,
  type Resource,
  SERVICE_VIP_BINDINGS,
  type ServiceVIPBinding,
  VPC_ATTACHMENTS,
  VPC_LABEL,
  type VpcAttachment,
} from '../rules/objects.ts'
import type { Observed } from '../rules/observed.ts'
import { KeyedIndex } from './keyedIndex.ts'
import { type Place, placeKey } from './places.ts'
import { endpointsOf } from './seen.ts'

export type ViewListener = {
  /** Something of this load balancer, or of an address, changed. */
  touched(loadBalancers: string[]): void
  /** Something changed that every load balancer of the cluster rests on. */
  touchedAll(): void
  attachmentChanged(object: VpcAttachment | undefined, previous: VpcAttachment | undefined): void
  /** Nothing of ours stands in a place on a node any more, or something else does. */
  placeFreed(key: string): void
  /** The gateways carry fewer rows than before. */
  roomFreed(): void
  /** Asked before vanished attachments of a relist are believed. */
  acceptRelist(known: number, vanished: number): boolean
  /** The list or watch of a kind failed; undefined: it works again. */
  failing(kind: Resource, error: Error | undefined): void
}

/** The CRDs of the data plane take objects without a spec, which say nothing. */
const says = ({ spec }: { spec?: object }): boolean => spec !== undefined

const index = <T extends KubeObject & { spec?: object }>(
  keysOf: (object: T) => string[],
): KeyedIndex<T> =>
  new KeyedIndex(
    ({ metadata }) => `${metadata.namespace ?? ''}/${metadata.name}`,
    (object) => (says(object) ? keysOf(object) : []),
  )

/**
 * What a cluster's owner sees of it: everything a judgement needs, followed and kept by load balancer,
 * rule and address. Reading it is free; all of it may be some milliseconds old.
 */
export class ClusterView {
  readonly #rules = index<NetworkRule>((rule) =>
    this.#isOurs(rule) ? [`lb/${rule.metadata.labels?.[LOAD_BALANCER_LABEL]}`] : [],
  )
  readonly #bindings = index<ServiceVIPBinding>(({ metadata, spec }) => [
    `lb/${metadata.labels?.[LOAD_BALANCER_LABEL]}`,
    `vip/${canonical(spec.vipAddress)}`,
    `name/${metadata.name}`,
  ])
  readonly #advertisements = index<BGPAdvertisement>(({ metadata, spec }) => [
    `rule/${metadata.labels?.[ADVERTISEMENT_RULE_LABEL]}`,
    ...(spec.prefixes ?? []).map((prefix) => `prefix/${canonicalPrefix(prefix)}`),
  ])
  readonly #labelled = index<VpcAttachment>(({ metadata }) =>
    servingLoadBalancers(metadata.labels ?? {}).map((id) => `lb/${id}`),
  )
  /** Ours, by their place on a node. */
  readonly #bound = index<ServiceVIPBinding>((binding) =>
    this.#isOurs(binding) ? [placeKey(placeOf(binding))] : [],
  )
  readonly #owned = index<ServiceVIPBinding>((binding) =>
    this.#isOurs(binding) ? [`lb/${binding.metadata.labels?.[LOAD_BALANCER_LABEL]}`] : [],
  )
  /** By node and address. */
  readonly #attached = index<VpcAttachment>((attachment) =>
    endpointsOf(attachment).map(({ node, address }) => `${node} ${address}`),
  )
  #rows = 0
  /** By rule. */
  readonly #rowsOf = new Map<string, number>()
  readonly #instance: string
  /** Which load balancer was last found to have an address. */
  readonly #holders = new Map<string, string>()
  /** By load balancer: the addresses that were last looked for. */
  readonly #vipsOf = new Map<string, readonly string[]>()
  readonly #follows: {
    rules: Follow<NetworkRule>
    bindings: Follow<ServiceVIPBinding>
    advertisements: Follow<BGPAdvertisement>
    gateways: Follow<NetworkGateway>
    attachments: Follow<VpcAttachment>
  }

  constructor(cluster: Cluster, instance: string, listener: ViewListener) {
    this.#instance = instance
    const touch = (...ids: (string | undefined)[]) =>
      listener.touched(ids.filter((id) => id !== undefined))
    const failing = (resource: Resource) => (error: Error | undefined) =>
      listener.failing(resource, error)
    const inNamespace = { namespace: DATA_PLANE_NAMESPACE }
    const follow = <T extends KubeObject>(
      resource: Resource,
      changed: FollowHandler<T>['changed'],
      selection: { namespace?: string; labelSelector?: string } = inNamespace,
    ): Follow<T> => cluster.follow<T>(resource, selection, { changed, failing: failing(resource) })
    this.#follows = {
      // Those of others too: gateways carry them beside ours.
      rules: cluster.follow<NetworkRule>(NETWORK_RULES, inNamespace, {
        changed: (object, previous) => {
          this.#rules.change(object, previous)
          if (this.#countRows(object, previous) < 0) listener.roomFreed()
          for (const rule of [object, previous])
            if (rule !== undefined && this.#isOurs(rule))
              touch(rule.metadata.labels?.[LOAD_BALANCER_LABEL])
        },
        failing: failing(NETWORK_RULES),
      }),
      bindings: follow<ServiceVIPBinding>(SERVICE_VIP_BINDINGS, (object, previous) => {
        this.#bindings.change(object, previous)
        this.#bound.change(object, previous)
        this.#owned.change(object, previous)
        if (previous !== undefined && says(previous) && this.#isOurs(previous))
          listener.placeFreed(placeKey(placeOf(previous)))
        for (const binding of [object, previous]) {
          if (binding === undefined || !says(binding)) continue
          touch(
            binding.metadata.labels?.[LOAD_BALANCER_LABEL],
            this.#holders.get(canonical(binding.spec.vipAddress)),
          )
        }
      }),
      advertisements: follow<BGPAdvertisement>(BGP_ADVERTISEMENTS, (object, previous) => {
        this.#advertisements.change(object, previous)
        for (const advertisement of [object, previous]) {
          if (advertisement === undefined || !says(advertisement)) continue
          const rule = advertisement.metadata.labels?.[ADVERTISEMENT_RULE_LABEL]
          touch(
            rule === undefined ? undefined : loadBalancerOf(rule),
            ...(advertisement.spec.prefixes ?? []).map((prefix) =>
              this.#holders.get(canonicalPrefix(prefix).replace(/\/\d+$/, '')),
            ),
          )
        }
      }),
      gateways: follow<NetworkGateway>(NETWORK_GATEWAYS, () => listener.touchedAll()),
      attachments: cluster.follow<VpcAttachment>(
        VPC_ATTACHMENTS,
        {},
        {
          changed: (object, previous) => {
            this.#labelled.change(object, previous)
            this.#attached.change(object, previous)
            touch(
              ...[object, previous].flatMap((attachment) =>
                servingLoadBalancers(attachment?.metadata.labels ?? {}),
              ),
            )
            listener.attachmentChanged(object, previous)
          },
          acceptRelist: (known, vanished) => listener.acceptRelist(known, vanished),
          failing: failing(VPC_ATTACHMENTS),
        },
      ),
    }
  }

  /** Resolves when all is known; rejects when the view is closed before. */
  async synced(): Promise<void> {
    await Promise.all(Object.values(this.#follows).map(({ synced }) => synced))
  }

  get attachments(): ReadonlyMap<string, VpcAttachment> {
    return this.#follows.attachments.objects
  }

  /** The load balancers of which there is a rule or a binding of ours. */
  withTraces(): string[] {
    return idsIn([...this.#rules.keys(), ...this.#bindings.keys()])
  }

  /**
   * The load balancers of which there is anything that certainly is ours, and those that an attachment
   * names: a label doesn't tell whose it is.
   */
  owners(): { certain: string[]; labelled: string[] } {
    const ours = [this.#rules.keys(), this.#owned.keys()].flatMap((keys) => [...keys])
    return { certain: idsIn(ours), labelled: idsIn(this.#labelled.keys()) }
  }

  /** How many gateways there are. */
  get gateways(): number {
    return this.#follows.gateways.objects.size
  }

  /** What there is of a load balancer, given the names of its rules and its addresses. */
  observed(
    loadBalancer: string,
    where: { rules: string[]; vips: string[]; awaited?: string[] },
  ): Observed {
    for (const vip of where.vips) this.#holders.set(vip, loadBalancer)
    this.#vipsOf.set(loadBalancer, where.vips)
    const mine = `lb/${loadBalancer}`
    const rules = this.#rules.find(mine)
    const names = new Set([...where.rules, ...rules.map(({ metadata }) => metadata.name)])
    const bindings = this.#bindings.find(mine, ...where.vips.map((vip) => `vip/${vip}`))
    return {
      rules,
      bindings,
      stranded: bindings
        .filter((one) => this.#isStranded(one))
        .map(({ metadata }) => metadata.name),
      rivals: this.#bindings.find(...(where.awaited ?? []).map((name) => `name/${name}`)),
      advertisements: this.#advertisements.find(
        ...[...names].map((name) => `rule/${name}`),
        ...where.vips.map((vip) => `prefix/${hostPrefix(vip)}`),
      ),
      gateways: [...this.#follows.gateways.objects.values()],
      labelled: this.#labelled.find(mine).map(({ metadata }) => ({
        namespace: metadata.namespace ?? '',
        name: metadata.name,
        uid: metadata.uid ?? '',
      })),
    }
  }

  /** Nothing of it is wanted here any more: what becomes of its addresses doesn't touch it. */
  forget(loadBalancer: string): void {
    for (const vip of this.#vipsOf.get(loadBalancer) ?? [])
      if (this.#holders.get(vip) === loadBalancer) this.#holders.delete(vip)
    this.#vipsOf.delete(loadBalancer)
  }

  /** Another load balancer's binding of ours that stands in a place. */
  bindingAt(place: Place, except: string): string | undefined {
    // One that doesn't say which VPC it is about may be about this one.
    return this.#bound
      .find(placeKey(place), placeKey({ ...place, vpc: '' }))
      .find(({ metadata }) => metadata.labels?.[LOAD_BALANCER_LABEL] !== except)?.metadata.name
  }

  /** Whether there is a rule of that name, whoever wrote it. */
  hasRule(name: string): boolean {
    return this.#follows.rules.objects.has(`${DATA_PLANE_NAMESPACE}/${name}`)
  }

  /** The rows that each gateway of the cluster carries: one for each VIP of every rule. */
  rows(): number {
    return this.#rows
  }

  /** Answers by how many there are more now. */
  #countRows(rule: NetworkRule | undefined, previous: NetworkRule | undefined): number {
    const { name } = (rule ?? previous)?.metadata ?? {}
    if (name === undefined) return 0
    const rows = rule?.spec?.vipAddresses?.length ?? 0
    const more = rows - (this.#rowsOf.get(name) ?? 0)
    this.#rows += more
    if (rule === undefined) this.#rowsOf.delete(name)
    else this.#rowsOf.set(name, rows)
    return more
  }

  #isOurs({ metadata }: KubeObject): boolean {
    return metadata.labels?.[INSTANCE_LABEL] === this.#instance
  }

  /** The data plane finds what it has of a binding by its backend's address on the node. */
  #isStranded({ spec }: ServiceVIPBinding): boolean {
    const address = canonical(spec.backendAddress ?? '')
    return this.#attached.find(`${spec.targetRef.name} ${address}`).length === 0
  }

  /** Takes in what a write answered, before the watch tells it. */
  learn(object: KubeObject): void {
    if (isOf<NetworkRule>(object, NETWORK_RULES)) this.#follows.rules.learn(object)
    if (isOf<ServiceVIPBinding>(object, SERVICE_VIP_BINDINGS)) this.#follows.bindings.learn(object)
    if (isOf<VpcAttachment>(object, VPC_ATTACHMENTS)) this.#follows.attachments.learn(object)
  }

  /** What waits after a failure is tried at once. */
  hurry(): void {
    for (const follow of Object.values(this.#follows)) follow.hurry()
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.#follows).map((follow) => follow.close()))
  }
}

/** The load balancers among keys of an index, each once. */
const idsIn = (keys: Iterable<string>): string[] => [
  ...new Set(
    [...keys]
      .filter((key) => key.startsWith('lb/') && key !== 'lb/undefined')
      .map((key) => key.slice('lb/'.length)),
  ),
]

const placeOf = ({ metadata, spec }: ServiceVIPBinding): Place => ({
  vpc: metadata.labels?.[VPC_LABEL] ?? '',
  node: spec.targetRef.name,
  protocol: spec.protocol,
  port: spec.port,
})

const isOf = <T extends KubeObject>(object: KubeObject, resource: Resource): object is T =>
  object.kind === resource.kind && object.apiVersion === `${resource.group}/${resource.version}`
