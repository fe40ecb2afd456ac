import { ApiFailure, type Cluster } from '../../src/clusters/cluster.ts'
import type { ClusterContext } from '../../src/clusters/kubeconfig.ts'
import {
  BGP_ADVERTISEMENTS,
  type BGPAdvertisement,
  type ConditionStatus,
  DATA_PLANE_NAMESPACE,
  NETWORK_GATEWAYS,
  NETWORK_RULES,
  type NetworkGateway,
  type NetworkRule,
  SERVICE_VIP_BINDINGS,
  type ServiceVIPBinding,
  VPC_ATTACHMENTS,
  type VpcAttachment,
} from '../../src/rules/objects.ts'
import type { Dialect } from '../../src/rules/wanted.ts'
import { planBinding } from './bindings.ts'
import type { EngineLimits } from './engine.ts'
import { followSaid } from './following.ts'
import { type Delays, Gates, type Step } from './gates.ts'
import { planAdvertisement, planDeparted, planGateway } from './gateways.ts'
import { type Action, Jobs } from './jobs.ts'
import { planRule } from './rules.ts'
import { planBindings, planReport } from './selectorRules.ts'
import { type Row, TranslationTable } from './translation.ts'
import { World } from './world.ts'
import { Writer } from './writer.ts'

export type DataPlaneOptions = {
  /** Where it reads; it is not closed with the data plane. */
  cluster: Cluster
  /** The same cluster, for writing under the data plane's own field manager. */
  context: ClusterContext
  /** Nodes that run a gateway; their NetworkGateway objects are made where missing. */
  gateways: string[]
  /** Default: no galactic of today serves IPv4. */
  servesIPv4?: boolean
  dialect: Dialect
  delays?: Delays
  /** Smaller tables for tests. */
  limits?: Partial<Omit<EngineLimits, 'servesIPv4'>>
  signal?: AbortSignal
}

export type DataPlane = {
  /** The translation rows of backend nodes, as a kernel would have them: who really gets the packets. */
  rows(): Row[]
  /** By gateway node, the rules it forwards. */
  loaded(): Map<string, string[]>
  /** From now on nothing is done and nothing answered; watches go on. */
  pause(): void
  resume(): void
  /** Holds one step back for a rule's name, a VIP or (`report`) a gateway node, until the answer is called. */
  hold(step: Step, subject: string): () => void
  /** Has a gateway say Ready False for a reason, or the truth again (undefined). */
  setGatewayReady(
    node: string,
    reason: string | undefined,
    status?: Exclude<ConditionStatus, 'True'>,
  ): void
  addGateway(node: string): Promise<void>
  dropGateway(node: string): Promise<void>
  close(): Promise<void>
}

/** What a real data plane writes under; anything but ours. */
const MANAGER = 'galactic'

/**
 * A simulation of galactic in one cluster, through its API server: gateways that accept and advertise
 * rules, nodes that bind backends. It forwards nothing, and is held to do what the real one does,
 * silences and traps included. Resolves when it has read everything once.
 */
export async function startDataPlane(options: DataPlaneOptions): Promise<DataPlane> {
  const { cluster, dialect, servesIPv4 = false } = options
  const gates = new Gates(options.delays ?? {})
  const writer = new Writer(options.context, MANAGER)
  const jobs = new Jobs((key) => plan(world, key), gates)
  const world = new World({
    dialect,
    writer,
    limits: { vipRows: 4096, rulesPerVpc: 64, backends: 64, ...options.limits, servesIPv4 },
    table: new TranslationTable({
      rows: dialect === 'backends' ? 'keyed' : 'claimed',
      shared: servesIPv4,
    }),
    touch(key) {
      jobs.touch(key)
      if (dialect !== 'selector' || !key.startsWith('rule ')) return
      jobs.touch(key.replace('rule', 'bindings'))
      jobs.touch(key.replace('rule', 'report'))
    },
  })

  const add = (node: string) => addGateway(writer, node)
  await Promise.all(options.gateways.map(add))
  // Nothing is judged before everything is known: a rule by the inventory and the gateways.
  let started = false
  const attachments = cluster.follow<VpcAttachment>(
    VPC_ATTACHMENTS,
    {},
    {
      changed: (now, before) => started && world.attachmentChanged(now, before),
    },
  )
  const place = { namespace: DATA_PLANE_NAMESPACE }
  world.followed = {
    gateways: cluster.follow<NetworkGateway>(NETWORK_GATEWAYS, place, {
      changed: (now, before) => started && world.gatewayChanged(now, before),
    }),
    rules: followSaid<NetworkRule>(
      cluster,
      NETWORK_RULES,
      (now, before) => started && world.ruleChanged(now, before),
    ),
    advertisements: followSaid<BGPAdvertisement>(
      cluster,
      BGP_ADVERTISEMENTS,
      (now, before) => started && world.advertisementChanged(now, before),
    ),
    bindings: followSaid<ServiceVIPBinding>(
      cluster,
      SERVICE_VIP_BINDINGS,
      (now, before) => started && world.bindingChanged(now, before),
    ),
  }
  const { gateways, rules, advertisements, bindings } = world.followed
  const follows = [attachments, gateways, rules, advertisements, bindings]
  await Promise.all(follows.map(({ synced }) => synced))
  started = true
  for (const one of attachments.objects.values()) world.attachmentChanged(one, undefined)
  for (const one of gateways.objects.values()) world.gatewayChanged(one, undefined)
  for (const one of rules.objects.values()) world.ruleChanged(one, undefined)
  for (const one of advertisements.objects.values()) world.advertisementChanged(one, undefined)
  for (const one of bindings.objects.values()) world.bindingChanged(one, undefined)

  let closing: Promise<void> | undefined
  const close = () => {
    closing ??= (async () => {
      gates.close()
      await Promise.all([...follows.map((follow) => follow.close()), jobs.close()])
      await writer.close()
    })()
    return closing
  }
  options.signal?.addEventListener('abort', () => void close(), { once: true })
  if (options.signal?.aborted) await close()

  return {
    rows: () => world.table.rows,
    loaded: () =>
      new Map([...world.engines].map(([node, { active }]) => [node, [...active.keys()]])),
    pause: () => gates.pause(),
    resume: () => gates.resume(),
    hold: (step, subject) => gates.hold(step, subject),
    setGatewayReady(node, reason, status = 'False') {
      if (reason === undefined) world.saidReady.delete(node)
      else world.saidReady.set(node, { status, reason })
      world.touchGateway(node)
    },
    addGateway: add,
    dropGateway: (name) =>
      writer.remove(NETWORK_GATEWAYS, { name, namespace: DATA_PLANE_NAMESPACE }),
    close,
  }
}

const PLANS: Record<string, (world: World, name: string) => Action | undefined> = {
  rule: planRule,
  bindings: planBindings,
  report: planReport,
  binding: planBinding,
  advertisement: planAdvertisement,
  gateway: planGateway,
  departed: planDeparted,
}

function plan(world: World, key: string): Action | undefined {
  const cut = key.indexOf(' ')
  return PLANS[key.slice(0, cut)]?.(world, key.slice(cut + 1))
}

/** By convention a gateway's object is named as its node. */
async function addGateway(writer: Writer, node: string): Promise<void> {
  try {
    await writer.create<NetworkGateway>(NETWORK_GATEWAYS, {
      metadata: { name: node, namespace: DATA_PLANE_NAMESPACE },
      spec: { targetRef: { kind: 'Node', name: node } },
    })
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.reason !== 'AlreadyExists') throw error
  }
}
