import { NETWORK_RULES, type NetworkRule } from '../../src/rules/objects.ts'
import { advertise, withdraw } from './advertising.ts'
import { conditionOf, isTrue, type Said, withCondition } from './conditions.ts'
import type { Load } from './engine.ts'
import type { Action } from './jobs.ts'
import { loadEverywhere, unload } from './loading.ts'
import { setRuleStatus, subjectsOf } from './ruleStatus.ts'
import { planLeftBindings, planSelectorRule } from './selectorRules.ts'
import { canonical, familiesOf } from './vips.ts'
import type { World } from './world.ts'

export const RULE_FINALIZER = 'galactic.datum.net/networkrule-teardown'

const ACCEPTED: Said = {
  type: 'Accepted',
  status: 'True',
  reason: 'GatewayNodesRegistered',
  message: 'gateway nodes are registered for this namespace',
}
const NO_GATEWAYS: Said = {
  type: 'Accepted',
  status: 'False',
  reason: 'NoGatewayNodes',
  message: 'no NetworkGateway nodes are registered in this namespace yet',
}

/** What is to be done about one rule: accept it, advertise it, tear it down. */
export function planRule(world: World, name: string): Action | undefined {
  const rule = world.rule(name)
  if (rule === undefined) {
    unload(world, name)
    return planLeftBindings(world, name)
  }
  if (rule.metadata.deletionTimestamp !== undefined) return planTeardown(world, rule)
  if (world.engines.size === 0) {
    // There is nobody to put a finalizer on it: such a rule can be deleted at once.
    const accepted = conditionOf(rule.status?.conditions, 'Accepted')
    return accepted?.reason === NO_GATEWAYS.reason ? undefined : accept(world, rule, NO_GATEWAYS)
  }
  if (!hasFinalizer(rule) || !isTrue(rule.status?.conditions, 'Accepted')) {
    return accept(world, rule, ACCEPTED)
  }
  return world.dialect === 'backends' ? planListed(world, rule) : planSelectorRule(world, rule)
}

/**
 * The *backends* dialect: one backend that doesn't resolve and the whole rule is skipped, without a
 * word anywhere; what was advertised before stays so, with nothing behind it. A rule that can't be
 * loaded is advertised all the same, and the node says EngineDegraded.
 */
function planListed(world: World, rule: NetworkRule): Action | undefined {
  const load = loadOf(world, rule)
  if (load === undefined) {
    unload(world, rule.metadata.name)
    return undefined
  }
  loadEverywhere(world, load)
  return advertise(world, rule, world.engines.keys(), false)
}

function loadOf(world: World, rule: NetworkRule): Load | undefined {
  const { spec } = rule
  if (!('backends' in spec)) return undefined
  const backends: Load['backends'] = []
  for (const backend of spec.backends) {
    const address = canonical(backend.address)
    const place = address === undefined ? undefined : world.inventory.resolve(spec.vpcRef, address)
    if (place === undefined) return undefined
    backends.push({ address: place.address, port: backend.port })
  }
  const { IPV4, IPV6 } = familiesOf(rule)
  return {
    rule: rule.metadata.name,
    vpc: spec.vpcRef,
    protocol: spec.protocol,
    port: spec.port,
    vips: [...IPV4, ...IPV6],
    backends,
  }
}

function accept(world: World, rule: NetworkRule, said: Said): Action {
  return {
    step: 'accept',
    subjects: subjectsOf(rule),
    async run() {
      let current = rule
      if (said === ACCEPTED && !hasFinalizer(rule)) {
        const finalizers = [...(rule.metadata.finalizers ?? []), RULE_FINALIZER]
        current = await setFinalizers(world, rule, finalizers)
        world.followed.rules.learn(current)
      }
      const { conditions } = current.status ?? {}
      const before = conditionOf(conditions, 'Accepted')
      if (before?.status === said.status && before.reason === said.reason) return 'seen'
      // The generation of now, and never again while it is True.
      const after = withCondition(conditions, said, current.metadata.generation)
      if (after !== undefined) await setRuleStatus(world, current, after)
      return 'seen'
    },
  }
}

function planTeardown(world: World, rule: NetworkRule): Action | undefined {
  const name = rule.metadata.name
  unload(world, name)
  // The finalizer is a gateway's to remove: without one the rule stays.
  if (!hasFinalizer(rule) || world.engines.size === 0) return undefined
  return {
    step: 'teardown',
    subjects: subjectsOf(rule),
    async run() {
      await Promise.all(world.advertisementsOf.get(name).map((one) => withdraw(world, one)))
      const finalizers = (rule.metadata.finalizers ?? []).filter((one) => one !== RULE_FINALIZER)
      await setFinalizers(world, rule, finalizers)
      return 'unseen'
    },
  }
}

function setFinalizers(
  world: World,
  rule: NetworkRule,
  finalizers: string[],
): Promise<NetworkRule> {
  const { name, namespace, resourceVersion } = rule.metadata
  const patch = { metadata: { resourceVersion, finalizers } }
  return world.writer.patch<NetworkRule>(NETWORK_RULES, { name, namespace }, patch)
}

function hasFinalizer(rule: NetworkRule): boolean {
  return rule.metadata.finalizers?.includes(RULE_FINALIZER) ?? false
}
