import type { Follow } from '../../src/clusters/cluster.ts'
import {
  ADVERTISEMENT_RULE_LABEL,
  type BGPAdvertisement,
  type ConditionStatus,
  DATA_PLANE_NAMESPACE,
  type NetworkGateway,
  type NetworkRule,
  type ServiceVIPBinding,
  type VpcAttachment,
} from '../../src/rules/objects.ts'
import type { Dialect } from '../../src/rules/wanted.ts'
import { type EngineLimits, GatewayEngine } from './engine.ts'
import { Inventory } from './inventory.ts'
import { type Owners, ownersOf } from './selection.ts'
import type { TranslationTable } from './translation.ts'
import { canonical, familiesOf } from './vips.ts'
import type { Writer } from './writer.ts'

/** The objects of a cluster's data plane, as its follows have them. */
export type Followed = {
  rules: Follow<NetworkRule>
  gateways: Follow<NetworkGateway>
  advertisements: Follow<BGPAdvertisement>
  bindings: Follow<ServiceVIPBinding>
}

/** A binding as it was put into the table. */
export type Registration = {
  uid: string | undefined
  generation: number | undefined
  binding: ServiceVIPBinding
  vpc: string
  vip: string
  backend: string
}

/** Everything that the parts of the data plane know together, and how they tell each other to look again. */
export class World {
  readonly dialect: Dialect
  readonly limits: EngineLimits
  readonly writer: Writer
  readonly table: TranslationTable
  readonly inventory = new Inventory()
  /** By gateway node. */
  readonly engines = new Map<string, GatewayEngine>()
  /** By gateway node, then rule: why it could not be advertised. */
  readonly advertising = new Map<string, Map<string, string>>()
  /** By rule: its advertisements' names. */
  readonly advertisementsOf = new Index()
  /** By rule: the bindings that the data plane wrote for it. */
  readonly bindingsOf = new Index()
  /** By canonical VIP: the names of rules that carry it. */
  readonly rulesOfVip = new Index()
  /** By VPC: the names of its rules. */
  readonly rulesOfVpc = new Index()
  /** By binding: what it has in the table. */
  readonly registered = new Map<string, Registration>()
  /** Bindings that could not be bound or unbound, by the generation tried: until the inventory changes. */
  readonly stuckBindings = new Map<string, number | undefined>()
  /** By gateway node: what a test has it say instead of the truth. */
  readonly saidReady = new Map<string, { status: ConditionStatus; reason: string }>()
  readonly touch: (key: string) => void
  readonly #owners = new Map<string, Owners>()
  #followed: Followed | undefined

  constructor(options: {
    dialect: Dialect
    limits: EngineLimits
    writer: Writer
    table: TranslationTable
    touch: (key: string) => void
  }) {
    this.dialect = options.dialect
    this.limits = options.limits
    this.writer = options.writer
    this.table = options.table
    this.touch = options.touch
  }

  get followed(): Followed {
    if (this.#followed === undefined) throw new Error('the data plane follows nothing yet')
    return this.#followed
  }

  set followed(followed: Followed) {
    this.#followed = followed
  }

  rule(name: string): NetworkRule | undefined {
    return this.followed.rules.objects.get(`${DATA_PLANE_NAMESPACE}/${name}`)
  }

  advertisement(name: string): BGPAdvertisement | undefined {
    return this.followed.advertisements.objects.get(`${DATA_PLANE_NAMESPACE}/${name}`)
  }

  binding(name: string): ServiceVIPBinding | undefined {
    return this.followed.bindings.objects.get(`${DATA_PLANE_NAMESPACE}/${name}`)
  }

  rulesIn(vpc: string): NetworkRule[] {
    return this.rulesOfVpc
      .get(vpc)
      .map((name) => this.rule(name))
      .filter((rule) => rule !== undefined)
  }

  /** Who serves each backend of a VPC (*selector* dialect). */
  ownersIn(vpc: string): Owners {
    const known = this.#owners.get(vpc)
    if (known !== undefined) return known
    const owners = ownersOf(this.rulesIn(vpc), this.inventory.attachmentsOf(vpc), this.limits)
    this.#owners.set(vpc, owners)
    return owners
  }

  attachmentChanged(now: VpcAttachment | undefined, before: VpcAttachment | undefined): void {
    const { namespace, name } = (now ?? before)?.metadata ?? { name: '' }
    for (const vpc of this.inventory.take(`${namespace}/${name}`, now)) {
      this.#owners.delete(vpc)
      for (const rule of this.rulesOfVpc.get(vpc)) this.touch(`rule ${rule}`)
    }
    this.retryBindings()
  }

  /** What could not be bound may be now. */
  retryBindings(): void {
    const stuck = [...this.stuckBindings.keys()]
    this.stuckBindings.clear()
    for (const name of stuck) this.touch(`binding ${name}`)
  }

  ruleChanged(now: NetworkRule | undefined, before: NetworkRule | undefined): void {
    const name = (now ?? before)?.metadata.name ?? ''
    if (before !== undefined) {
      const { IPV4, IPV6 } = familiesOf(before)
      for (const vip of [...IPV4, ...IPV6]) this.rulesOfVip.drop(vip, name)
      this.rulesOfVpc.drop(before.spec.vpcRef, name)
    }
    if (now !== undefined) {
      const { IPV4, IPV6 } = familiesOf(now)
      for (const vip of [...IPV4, ...IPV6]) this.rulesOfVip.add(vip, name)
      this.rulesOfVpc.add(now.spec.vpcRef, name)
    }
    this.touch(`rule ${name}`)
    // Claims are the VPC's: what one rule gives up, another takes.
    if (this.dialect === 'selector' && !isSameWish(now, before)) {
      for (const vpc of new Set([now?.spec.vpcRef ?? '', before?.spec.vpcRef ?? ''])) {
        this.#owners.delete(vpc)
        for (const other of this.rulesOfVpc.get(vpc)) this.touch(`rule ${other}`)
      }
    }
  }

  gatewayChanged(now: NetworkGateway | undefined, before: NetworkGateway | undefined): void {
    const [node, old] = [nodeOf(now), nodeOf(before)]
    if (old !== undefined && old !== node) {
      this.engines.delete(old)
      this.advertising.delete(old)
      this.touch(`departed ${old}`)
    }
    if (node !== undefined && !this.engines.has(node)) {
      this.engines.set(node, new GatewayEngine(this.limits))
      this.touch(`departed ${node}`)
    }
    if (node !== old) {
      for (const rule of this.followed.rules.objects.values())
        this.touch(`rule ${rule.metadata.name}`)
    }
    this.touch(`gateway ${(now ?? before)?.metadata.name}`)
  }

  advertisementChanged(
    now: BGPAdvertisement | undefined,
    before: BGPAdvertisement | undefined,
  ): void {
    const name = (now ?? before)?.metadata.name ?? ''
    const rule = now?.metadata.labels?.[ADVERTISEMENT_RULE_LABEL]
    const old = before?.metadata.labels?.[ADVERTISEMENT_RULE_LABEL]
    if (old !== undefined && old !== rule) this.advertisementsOf.drop(old, name)
    if (rule !== undefined) this.advertisementsOf.add(rule, name)
    for (const one of new Set([rule, old])) if (one !== undefined) this.touch(`rule ${one}`)
    this.touch(`advertisement ${name}`)
  }

  bindingChanged(now: ServiceVIPBinding | undefined, before: ServiceVIPBinding | undefined): void {
    const name = (now ?? before)?.metadata.name ?? ''
    const rule = now?.metadata.labels?.[ADVERTISEMENT_RULE_LABEL]
    const old = before?.metadata.labels?.[ADVERTISEMENT_RULE_LABEL]
    if (old !== undefined && old !== rule) this.bindingsOf.drop(old, name)
    if (rule !== undefined) this.bindingsOf.add(rule, name)
    for (const one of new Set([rule, old])) if (one !== undefined) this.touch(`rule ${one}`)
    if (now?.metadata.deletionTimestamp !== before?.metadata.deletionTimestamp) {
      this.stuckBindings.delete(name)
    }
    this.touch(`binding ${name}`)
  }

  /** Names by which a step for a VIP can be held back. */
  subjectsOfVip(vip: string): string[] {
    return [vip, ...this.rulesOfVip.get(canonical(vip) ?? vip)]
  }

  /** Where the gateway's Ready condition has to be thought over. */
  touchGateway(node: string): void {
    for (const gateway of this.followed.gateways.objects.values()) {
      if (nodeOf(gateway) === node) this.touch(`gateway ${gateway.metadata.name}`)
    }
  }
}

/** The node that runs a gateway. */
export function nodeOf(gateway: NetworkGateway | undefined): string | undefined {
  return gateway?.spec?.targetRef.name
}

/** A gateway node's BGP router, to which its advertisements belong. */
export function routerOf(node: string): string {
  return `galactic-router-${node}`
}

/** Names by something else. */
export class Index {
  readonly #names = new Map<string, Set<string>>()

  get(key: string): string[] {
    return [...(this.#names.get(key) ?? [])]
  }

  add(key: string, name: string): void {
    const names = this.#names.get(key)
    if (names === undefined) this.#names.set(key, new Set([name]))
    else names.add(name)
  }

  drop(key: string, name: string): void {
    const names = this.#names.get(key)
    names?.delete(name)
    if (names?.size === 0) this.#names.delete(key)
  }
}

function isSameWish(a: NetworkRule | undefined, b: NetworkRule | undefined): boolean {
  return a?.metadata.uid === b?.metadata.uid && a?.metadata.generation === b?.metadata.generation
}
