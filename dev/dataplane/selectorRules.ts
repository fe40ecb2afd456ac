import { createHash } from 'node:crypto'
import {
  ADVERTISEMENT_RULE_LABEL,
  DATA_PLANE_NAMESPACE,
  LOAD_BALANCER_LABEL,
  MANAGED_BY_LABEL,
  NETWORK_RULES,
  type NetworkRule,
  type ObjectCondition,
  SERVICE_VIP_BINDINGS,
  type ServiceVIPBinding,
} from '../../src/rules/objects.ts'
import { advertise } from './advertising.ts'
import { isTrue, type Said, withCondition } from './conditions.ts'
import type { Load } from './engine.ts'
import type { Place } from './inventory.ts'
import type { Action } from './jobs.ts'
import { loadEverywhere, unload } from './loading.ts'
import { setRuleStatus, subjectsOf } from './ruleStatus.ts'
import { type Selection, select, selectorProblem, selectorSpec } from './selection.ts'
import { canonical, familiesOf } from './vips.ts'
import type { World } from './world.ts'

const MANAGED_BY = 'galactic-router'
const BINDING_NODE_LABEL = 'galactic.datum.net/binding-node'

/** What a gateway made of a rule. */
type Outcome = {
  selection: Selection | undefined
  /** Why no gateway loads it. */
  problem: string | undefined
  /** By node: why that one could not. */
  failures: Map<string, string>
}

/** The gateways' part of a rule of the *selector* dialect: only what is loaded is advertised. */
export function planSelectorRule(world: World, rule: NetworkRule): Action | undefined {
  const { problem, failures } = outcomeOf(world, rule)
  const loaded = problem === undefined ? [...world.engines.keys()] : []
  const nodes = loaded.filter((node) => !failures.has(node))
  return advertise(world, rule, nodes, true)
}

/** The backend nodes' part: a binding for each VIP and backend. */
export function planBindings(world: World, name: string): Action | undefined {
  const rule = world.rule(name)
  if (rule === undefined || !isServed(rule)) return undefined
  const selection = selectionOf(world, rule)
  // Bindings of a rule that makes no sense any more stay until it does, or is gone.
  if (selection === undefined) return undefined
  const wanted = new Map(
    bindingsOf(world, rule, selection.backends).map((one) => [one.metadata.name, one]),
  )
  const stale = world.bindingsOf
    .get(name)
    .filter(
      (one) => !wanted.has(one) && world.binding(one)?.metadata.deletionTimestamp === undefined,
    )
  const missing = [...wanted.values()].filter(({ metadata, spec }) => {
    const known = world.binding(metadata.name)
    return (
      known === undefined || (known.spec.port !== spec.port && !known.metadata.deletionTimestamp)
    )
  })
  if (stale.length === 0 && missing.length === 0) return undefined
  return {
    step: 'bind',
    subjects: subjectsOf(rule),
    async run() {
      for (const binding of missing) await putBinding(world, binding)
      for (const one of stale) await removeBinding(world, one)
      return stale.length > 0 ? 'unseen' : 'seen'
    },
  }
}

/** When a rule is gone, its bindings go: they are owned by it. */
export function planLeftBindings(world: World, name: string): Action | undefined {
  const left = world.bindingsOf
    .get(name)
    .filter((one) => world.binding(one)?.metadata.deletionTimestamp === undefined)
  if (left.length === 0) return undefined
  return {
    step: 'teardown',
    subjects: [name],
    async run() {
      for (const one of left) await removeBinding(world, one)
      return 'unseen'
    },
  }
}

/** What the nodes say on the rule: `<gateway>/Programmed` and `<backend node>/BackendsBound`. */
export function planReport(world: World, name: string): Action | undefined {
  const rule = world.rule(name)
  if (rule === undefined || !isServed(rule)) return undefined
  const outcome = outcomeOf(world, rule)
  const said = [...programmed(world, outcome), ...bound(world, rule, outcome)]
  const types = new Set(said.map(({ type }) => type))
  const before = rule.status?.conditions ?? []
  let after: ObjectCondition[] = before.filter(({ type }) => !type.includes('/') || types.has(type))
  for (const one of said) after = withCondition(after, one, rule.metadata.generation) ?? after
  const same = after.length === before.length && after.every((one) => before.includes(one))
  if (same) return undefined
  return {
    step: 'report',
    subjects: subjectsOf(rule),
    async run() {
      await setRuleStatus(world, rule, after)
      return 'seen'
    },
  }
}

function isServed(rule: NetworkRule): boolean {
  const deleting = rule.metadata.deletionTimestamp !== undefined
  return !deleting && isTrue(rule.status?.conditions, 'Accepted')
}

function selectionOf(world: World, rule: NetworkRule): Selection | undefined {
  if (selectorProblem(rule, world.limits) !== undefined) return undefined
  const { vpcRef } = rule.spec
  const attachments = world.inventory.attachmentsOf(vpcRef)
  return select(rule, attachments, world.ownersIn(vpcRef), world.limits)
}

/** Loads the rule on all gateways, or unloads it where nothing is left of it. */
function outcomeOf(world: World, rule: NetworkRule): Outcome {
  const selection = selectionOf(world, rule)
  const spec = selectorSpec(rule)
  const failures = new Map<string, string>()
  if (selection === undefined || spec === undefined) {
    unload(world, rule.metadata.name)
    return { selection, problem: selectorProblem(rule, world.limits), failures }
  }
  if (selection.backends.length === 0) {
    unload(world, rule.metadata.name)
    return { selection, problem: `no backend: ${leftOut(selection) || 'none selected'}`, failures }
  }
  const { IPV4, IPV6 } = familiesOf(rule)
  const load: Load = {
    rule: rule.metadata.name,
    vpc: spec.vpcRef,
    protocol: spec.protocol,
    port: spec.port,
    vips: [...IPV4, ...IPV6],
    backends: selection.backends.map(({ address }) => ({ address, port: spec.backendPort })),
  }
  return { selection, problem: undefined, failures: loadEverywhere(world, load) }
}

function leftOut({ unresolved, claimed }: Selection): string {
  return [
    ...unresolved,
    ...claimed.map(({ place, owner }) => `${place.address} is served by NetworkRule ${owner}`),
  ].join('; ')
}

function programmed(world: World, { selection, problem, failures }: Outcome): Said[] {
  const rest = selection === undefined ? '' : leftOut(selection)
  return [...world.engines.keys()].map((node) => {
    const type = `${node}/Programmed`
    const failure = failures.get(node)
    if (problem !== undefined) {
      const message = `not loaded on node ${node}: ${problem}`
      return { type, status: 'False', reason: 'InvalidRule', message }
    }
    if (failure !== undefined) {
      const message = `not loaded on node ${node}: ${failure}`
      return { type, status: 'False', reason: 'LoadFailed', message }
    }
    if (rest !== '') {
      const message = `loaded on node ${node} without some backends: ${rest}`
      return { type, status: 'True', reason: 'BackendsUnresolved', message }
    }
    return { type, status: 'True', reason: 'Programmed', message: `loaded on node ${node}` }
  })
}

function bound(world: World, rule: NetworkRule, { selection, problem }: Outcome): Said[] {
  if (selection === undefined) {
    const existing = world.bindingsOf.get(rule.metadata.name).map((name) => world.binding(name))
    const nodes = new Set(existing.map((binding) => binding?.spec.targetRef.name))
    return [...nodes].flatMap((node) =>
      node === undefined ? [] : [boundOn(node, 'False', 'InvalidRule', problem ?? '')],
    )
  }
  const bindings = bindingsOf(world, rule, selection.backends)
  const nodes = new Set([
    ...bindings.map(({ spec }) => spec.targetRef.name),
    ...selection.claimed.map(({ place }) => place.node),
  ])
  return [...nodes].map((node) => {
    const own = bindings.filter(({ spec }) => spec.targetRef.name === node)
    const open = own.flatMap(({ metadata }) => {
      const known = world.binding(metadata.name)
      if (known === undefined) return [`${metadata.name}: not created yet`]
      const { conditions } = known.status ?? {}
      if (isTrue(conditions, 'Bound', known.metadata.generation)) return []
      return [`${metadata.name}: ${conditions?.[0]?.reason ?? 'not reconciled yet'}`]
    })
    const claimed = selection.claimed.filter(({ place }) => place.node === node)
    if (open.length > 0) return boundOn(node, 'False', 'BindingsNotBound', open.join('; '))
    if (claimed.length === 0) return boundOn(node, 'True', 'Bound', `${own.length} bindings bound`)
    const message = claimed.map(({ place, owner }) => `${place.address}: ${owner}`).join('; ')
    return boundOn(node, 'False', 'BackendsClaimed', message)
  })
}

function boundOn(node: string, status: 'True' | 'False', reason: string, message: string): Said {
  return { type: `${node}/BackendsBound`, status, reason, message }
}

/** The bindings that backend nodes write for a rule, IPv4 VIPs only where they are served. */
function bindingsOf(world: World, rule: NetworkRule, backends: Place[]): ServiceVIPBinding[] {
  const { IPV4, IPV6 } = familiesOf(rule)
  const vips = world.limits.servesIPv4 ? [...IPV4, ...IPV6] : IPV6
  const backendPort = selectorSpec(rule)?.backendPort ?? 0
  const { name, uid = '', labels } = rule.metadata
  const loadBalancer = labels?.[LOAD_BALANCER_LABEL]
  return vips.flatMap((vip) =>
    backends.map(({ node, address, egressKind }) => ({
      apiVersion: 'network.datumapis.com/v1alpha1',
      kind: SERVICE_VIP_BINDINGS.kind,
      metadata: {
        name: `${name}-${node}-${digest(`${vip} ${address} ${backendPort}`)}`,
        namespace: DATA_PLANE_NAMESPACE,
        labels: {
          [MANAGED_BY_LABEL]: MANAGED_BY,
          [ADVERTISEMENT_RULE_LABEL]: name,
          [BINDING_NODE_LABEL]: node,
          ...(loadBalancer === undefined ? {} : { [LOAD_BALANCER_LABEL]: loadBalancer }),
        },
        ownerReferences: [
          { apiVersion: 'network.datumapis.com/v1alpha1', kind: NETWORK_RULES.kind, name, uid },
        ],
      },
      spec: {
        targetRef: { kind: 'Node', name: node },
        vipAddress: vip,
        port: rule.spec.port,
        protocol: rule.spec.protocol,
        backendAddress: canonical(address) ?? address,
        backendPort,
        egressKind,
      },
    })),
  )
}

async function putBinding(world: World, binding: ServiceVIPBinding): Promise<void> {
  const { name, namespace } = binding.metadata
  const written =
    world.binding(name) === undefined
      ? await world.writer.create<ServiceVIPBinding>(SERVICE_VIP_BINDINGS, binding)
      : await world.writer.patch<ServiceVIPBinding>(
          SERVICE_VIP_BINDINGS,
          { name, namespace },
          { spec: binding.spec },
        )
  world.followed.bindings.learn(written)
}

function removeBinding(world: World, name: string): Promise<void> {
  return world.writer.remove(SERVICE_VIP_BINDINGS, { name, namespace: DATA_PLANE_NAMESPACE })
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16)
}
