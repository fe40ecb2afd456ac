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
  type VpcAttachment,
} from '../rules/objects.ts'
import type { Observed } from '../rules/observed.ts'
import { KeyedIndex } from './keyedIndex.ts'

type Listener = {
  /** Something of this load balancer, or of an address, changed. */
  touched(loadBalancers: string[]): void
  /** Something changed that every load balancer of the cluster rests on. */
  touchedAll(): void
  attachmentChanged(object: VpcAttachment | undefined, previous: VpcAttachment | undefined): void
  attachmentsListed(): void
  failing(error: Error | undefined): void
}

const nameOf = ({ metadata }: KubeObject): string => `${metadata.namespace ?? ''}/${metadata.name}`

/**
 * What a cluster's owner sees of it: everything a judgement needs, followed and kept by load balancer,
 * rule and address. Reading it is free; all of it may be some milliseconds old.
 */
export class ClusterView {
  readonly #rules = new KeyedIndex<NetworkRule>(nameOf, ({ metadata, spec }) => [
    `lb/${metadata.labels?.[LOAD_BALANCER_LABEL]}`,
    ...(spec?.vipAddresses ?? []).map((vip) => `vip/${canonical(vip)}`),
  ])
  readonly #bindings = new KeyedIndex<ServiceVIPBinding>(nameOf, ({ metadata, spec }) => [
    `lb/${metadata.labels?.[LOAD_BALANCER_LABEL]}`,
    `vip/${canonical(spec.vipAddress)}`,
  ])
  readonly #advertisements = new KeyedIndex<BGPAdvertisement>(nameOf, ({ metadata, spec }) => [
    `rule/${metadata.labels?.[ADVERTISEMENT_RULE_LABEL]}`,
    ...(spec.prefixes ?? []).map((prefix) => `prefix/${canonicalPrefix(prefix)}`),
  ])
  readonly #labelled = new KeyedIndex<VpcAttachment>(nameOf, ({ metadata }) =>
    servingLoadBalancers(metadata.labels ?? {}).map((id) => `lb/${id}`),
  )
  /** Which load balancer was last found to have an address. */
  readonly #holders = new Map<string, string>()
  readonly #follows: {
    rules: Follow<NetworkRule>
    bindings: Follow<ServiceVIPBinding>
    advertisements: Follow<BGPAdvertisement>
    gateways: Follow<NetworkGateway>
    attachments: Follow<VpcAttachment>
  }

  constructor(cluster: Cluster, instance: string, listener: Listener) {
    const touch = (...ids: (string | undefined)[]) =>
      listener.touched(ids.filter((id) => id !== undefined))
    const inNamespace = { namespace: DATA_PLANE_NAMESPACE }
    const follow = <T extends KubeObject>(
      resource: Resource,
      changed: FollowHandler<T>['changed'],
      selection: { namespace?: string; labelSelector?: string } = inNamespace,
    ): Follow<T> => cluster.follow<T>(resource, selection, { changed })
    this.#follows = {
      rules: cluster.follow<NetworkRule>(
        NETWORK_RULES,
        { ...inNamespace, labelSelector: `${INSTANCE_LABEL}=${instance}` },
        {
          changed: (object, previous) => {
            this.#rules.change(object, previous)
            touch(...[object, previous].map((rule) => rule?.metadata.labels?.[LOAD_BALANCER_LABEL]))
          },
          failing: (error) => listener.failing(error),
        },
      ),
      bindings: follow<ServiceVIPBinding>(SERVICE_VIP_BINDINGS, (object, previous) => {
        this.#bindings.change(object, previous)
        for (const binding of [object, previous]) {
          if (binding === undefined) continue
          touch(
            binding.metadata.labels?.[LOAD_BALANCER_LABEL],
            this.#holders.get(canonical(binding.spec.vipAddress)),
          )
        }
      }),
      advertisements: follow<BGPAdvertisement>(BGP_ADVERTISEMENTS, (object, previous) => {
        this.#advertisements.change(object, previous)
        for (const advertisement of [object, previous]) {
          if (advertisement === undefined) continue
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
            touch(
              ...[object, previous].flatMap((attachment) =>
                servingLoadBalancers(attachment?.metadata.labels ?? {}),
              ),
            )
            listener.attachmentChanged(object, previous)
          },
          listed: () => listener.attachmentsListed(),
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
    const ids = [...this.#rules.keys(), ...this.#bindings.keys()]
      .filter((key) => key.startsWith('lb/') && key !== 'lb/undefined')
      .map((key) => key.slice('lb/'.length))
    return [...new Set(ids)]
  }

  /** What there is of a load balancer, given the names of its rules and its addresses. */
  observed(loadBalancer: string, where: { rules: string[]; vips: string[] }): Observed {
    for (const vip of where.vips) this.#holders.set(vip, loadBalancer)
    const mine = `lb/${loadBalancer}`
    const rules = this.#rules.find(mine)
    const names = new Set([...where.rules, ...rules.map(({ metadata }) => metadata.name)])
    return {
      rules,
      bindings: this.#bindings.find(mine, ...where.vips.map((vip) => `vip/${vip}`)),
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

  /** Takes in what a write answered, before the watch tells it. */
  learn(object: KubeObject): void {
    if (isOf<NetworkRule>(object, NETWORK_RULES)) this.#follows.rules.learn(object)
    if (isOf<ServiceVIPBinding>(object, SERVICE_VIP_BINDINGS)) this.#follows.bindings.learn(object)
    if (isOf<VpcAttachment>(object, VPC_ATTACHMENTS)) this.#follows.attachments.learn(object)
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.#follows).map((follow) => follow.close()))
  }
}

const isOf = <T extends KubeObject>(object: KubeObject, resource: Resource): object is T =>
  object.kind === resource.kind && object.apiVersion === `${resource.group}/${resource.version}`
