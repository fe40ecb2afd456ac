import { canonical, hostPrefix, isIPv4 } from './addresses.ts'
import type { Desired } from './desired.ts'
import { firstAgainst, found, holds } from './findings.ts'
import { advertisementName } from './names.ts'
import type { NetworkGateway, NetworkRule, ObjectCondition, ServiceVIPBinding } from './objects.ts'
import {
  announcesOnly,
  conditionOf,
  currentCondition,
  labelledFor,
  type Observed,
} from './observed.ts'
import { isReason, type Reason } from './reasons.ts'
import type { Finding } from './report.ts'
import { bindsAsWanted, isAsWanted } from './steps.ts'

/** What a cluster proves about one wanted rule. */
export type Proof = {
  applied: Finding
  accepted: Finding
  provisioned: Finding
  advertised: Finding
  /** Addresses of the backends that the rule, as it stands there now, sends connections to. */
  serving: Set<string>
  /** Backend nodes where an older load balancer holds the data plane's one place. */
  claimedNodes: Set<string>
}

/** Gathers the evidence for one wanted rule (§ "in effect" of the data plane's contract). */
export const prove = (wish: NetworkRule, desired: Desired, observed: Observed): Proof => {
  const rule = observed.rules.find(({ metadata }) => metadata.name === wish.metadata.name)
  const applied = appliedFinding(wish, rule)
  const accepted = acceptedFinding(rule, observed)
  const selector = desired.dialect === 'selector'
  const routes = observed.gateways.map((gateway) => {
    const programmed = selector && rule ? programmedFinding(gateway, rule) : undefined
    return { gateway, programmed, route: routeFinding(gateway, wish, observed, programmed) }
  })
  const nodes = selector ? boundNodes(rule, desired) : undefined
  const bound = nodes ? [...nodes.values()] : bindingFindings(wish, desired, observed)
  const claimed = bound.filter(({ reason }) => reason === 'BackendsClaimed')
  // A claimed node is left out as a conflict is: the rest is in effect without it.
  const mustBeBound =
    claimed.length < bound.length ? bound.filter((each) => !claimed.includes(each)) : bound
  const programmed = routes.flatMap((each) => each.programmed ?? [])
  const carries =
    rule !== undefined &&
    rule.metadata.deletionTimestamp === undefined &&
    holds(accepted) &&
    routes.some(({ route }) => route.status !== 'FALSE') &&
    (!selector || observed.gateways.some((gateway) => isProgrammed(gateway, rule)))
  return {
    applied,
    accepted,
    advertised: advertisedFinding(routes.map(({ route }) => route)),
    provisioned: firstAgainst(
      [applied, accepted, ...programmed, ...mustBeBound, ...routes.map(({ route }) => route)],
      found('TRUE', 'InEffect', 'The rule is in effect at every gateway and every backend.'),
    ),
    serving: new Set(
      !carries ? [] : nodes ? servingByNode(rule, desired) : servingByBinding(rule, observed),
    ),
    claimedNodes: new Set(
      [...(nodes ?? [])].flatMap(([node, { reason }]) =>
        reason === 'BackendsClaimed' ? [node] : [],
      ),
    ),
  }
}

const appliedFinding = (wish: NetworkRule, rule: NetworkRule | undefined): Finding => {
  if (!rule) return found('FALSE', 'Progressing', 'The rule is not in the cluster yet.')
  if (rule.metadata.deletionTimestamp !== undefined)
    return found(
      'FALSE',
      'Progressing',
      'The rule was deleted and is written anew once it is gone.',
    )
  return isAsWanted(wish, rule)
    ? found('TRUE', 'Applied', 'The rule is in the cluster as it should be.')
    : found('FALSE', 'Progressing', 'The rule in the cluster is not yet as it should be.')
}

/** Galactic sets `Accepted` once and never again, so its generation says nothing. */
const acceptedFinding = (rule: NetworkRule | undefined, observed: Observed): Finding => {
  const condition = rule && conditionOf(rule, 'Accepted')
  if (condition?.status === 'True') return found('TRUE', 'Accepted', 'The data plane accepted it.')
  if (observed.gateways.length === 0)
    return found('FALSE', 'NoGateway', 'The cluster has no NetworkGateway.')
  return condition?.status === 'False'
    ? found('FALSE', 'NotAccepted', `The data plane says ${said(condition)}.`)
    : found('FALSE', 'Progressing', 'The data plane has not accepted the rule yet.')
}

const said = ({ reason, message }: ObjectCondition): string =>
  message === '' ? reason : `${reason}: ${message}`

const nodeOf = ({ spec, metadata }: NetworkGateway): string => spec?.targetRef.name ?? metadata.name

/** Whether one gateway announces exactly the VIP, and can be believed. */
const routeFinding = (
  gateway: NetworkGateway,
  wish: NetworkRule,
  observed: Observed,
  programmed: Finding | undefined,
): Finding => {
  const node = nodeOf(gateway)
  const vip = wish.spec.vipAddresses[0] ?? ''
  const name = advertisementName(wish.metadata.name, node, isIPv4(vip))
  const trouble = troubleOf(gateway, programmed !== undefined && holds(programmed))
  if (trouble) return trouble
  const advertisement = observed.advertisements.find(({ metadata }) => metadata.name === name)
  if (!advertisement || advertisement.metadata.deletionTimestamp !== undefined)
    return found('FALSE', 'NotAdvertised', `Gateway ${node} has no advertisement of ${vip}.`)
  if (!labelledFor(advertisement, wish.metadata.name) || !announcesOnly(advertisement, vip))
    return found(
      'FALSE',
      'NotAdvertised',
      `Gateway ${node} announces something else than ${hostPrefix(vip)}.`,
    )
  const condition = currentCondition(advertisement, 'Advertised')
  if (condition?.status === 'True')
    return found('TRUE', 'Advertised', `Gateway ${node} announces ${hostPrefix(vip)}.`)
  return found(
    'FALSE',
    'NotAdvertised',
    condition
      ? `The advertisement of gateway ${node} says ${said(condition)}.`
      : `The advertisement of gateway ${node} is not announced yet.`,
  )
}

/** What a gateway says of its engine as a whole, as opposed to its announcements. */
const ENGINE_TROUBLE = new Set(['EngineDegraded', 'EngineReconcileFailed'])

/**
 * What a gateway says against itself. Any tenant's bad rule degrades a whole node, so that proves
 * nothing about this rule: Unknown, never False. That it has programmed this very rule
 * (`programmed`) is better evidence than the state of its engine.
 */
const troubleOf = (gateway: NetworkGateway, programmed: boolean): Finding | undefined => {
  const ready = conditionOf(gateway, 'Ready')
  if (ready?.status !== 'False') return undefined
  if (programmed && ENGINE_TROUBLE.has(ready.reason)) return undefined
  const says = `Gateway ${nodeOf(gateway)} says ${said(ready)}.`
  if (ready.reason === 'EngineDegraded') return found('UNKNOWN', 'EngineDegraded', says)
  if (ready.reason === 'AdvertisementFailed') return found('FALSE', 'NotAdvertised', says)
  return found('UNKNOWN', 'GatewayNotReady', says)
}

const advertisedFinding = (routes: Finding[]): Finding => {
  const [first] = routes
  if (!first) return found('FALSE', 'NoGateway', 'The cluster has no NetworkGateway.')
  const held = routes.filter(holds).length
  if (held === routes.length)
    return found('TRUE', 'Advertised', 'Every gateway announces exactly the address.')
  if (held === 0) return routes.find(({ status }) => status === 'UNKNOWN') ?? first
  const status = routes.some((route) => route.status === 'FALSE') ? 'FALSE' : 'UNKNOWN'
  return found(status, 'PartlyAdvertised', `${held} of ${routes.length} gateways announce it.`)
}

/** *backends* dialect: one finding for each of our bindings. */
const bindingFindings = (wish: NetworkRule, desired: Desired, observed: Observed): Finding[] =>
  desired.bindings
    .filter(({ spec }) => wish.spec.vipAddresses.includes(spec.vipAddress))
    .map((want) => bindingFinding(want, observed))

const bindingFinding = (want: ServiceVIPBinding, observed: Observed): Finding => {
  const { backendAddress, targetRef } = want.spec
  const binding = observed.bindings.find(({ metadata }) => metadata.name === want.metadata.name)
  const standing = binding && binding.metadata.deletionTimestamp === undefined
  const condition =
    standing && bindsAsWanted(want, binding) ? currentCondition(binding, 'Bound') : undefined
  if (condition?.status === 'True')
    return found('TRUE', 'InEffect', `${backendAddress} is bound on node ${targetRef.name}.`)
  return condition?.status === 'False'
    ? found('FALSE', 'BindFailed', `Node ${targetRef.name} says ${said(condition)}.`)
    : found('FALSE', 'Progressing', `${backendAddress} is not bound on node ${targetRef.name} yet.`)
}

/** The rule as it stands may list fewer or other backends than wished: only those are served. */
const servingByBinding = (rule: NetworkRule, observed: Observed): string[] => {
  if (!rule.spec || !('backends' in rule.spec)) return []
  const { spec } = rule
  const listed = new Set(spec.backends.map(({ address }) => canonical(address)))
  return observed.bindings.flatMap((binding) => {
    const { vipAddress, protocol, port, backendAddress = '' } = binding.spec
    const serves =
      listed.has(canonical(backendAddress)) &&
      spec.vipAddresses.some((vip) => canonical(vip) === canonical(vipAddress)) &&
      spec.protocol === protocol &&
      spec.port === port &&
      binding.metadata.deletionTimestamp === undefined &&
      currentCondition(binding, 'Bound')?.status === 'True'
    return serves ? [canonical(backendAddress)] : []
  })
}

const SELECTOR_REASONS: Record<string, Reason> = { BindingsNotBound: 'BindFailed' }

const refusal = (condition: ObjectCondition, otherwise: Reason): Reason =>
  SELECTOR_REASONS[condition.reason] ?? (isReason(condition.reason) ? condition.reason : otherwise)

const programmedType = (gateway: NetworkGateway): string => `${nodeOf(gateway)}/Programmed`

/** *selector* dialect: whether a gateway has programmed the rule as it is now. */
const programmedFinding = (gateway: NetworkGateway, rule: NetworkRule): Finding => {
  const condition = currentCondition(rule, programmedType(gateway))
  const node = nodeOf(gateway)
  if (condition?.status === 'True')
    return found('TRUE', 'InEffect', `Gateway ${node} has programmed the rule.`)
  return condition?.status === 'False'
    ? found('FALSE', refusal(condition, 'LoadFailed'), `Gateway ${node} says ${said(condition)}.`)
    : found('FALSE', 'Progressing', `Gateway ${node} has not programmed the rule yet.`)
}

/** Whatever the generation: an older one still carries what it had. */
const isProgrammed = (gateway: NetworkGateway, rule: NetworkRule): boolean =>
  conditionOf(rule, programmedType(gateway))?.status === 'True'

/** *selector* dialect: one finding for each node of a listed backend. */
const boundNodes = (rule: NetworkRule | undefined, desired: Desired): Map<string, Finding> => {
  const nodes = Object.values(desired.backends).flatMap(({ listed, node }) =>
    listed && node !== undefined ? [node] : [],
  )
  return new Map(
    nodes.map((node) => {
      const condition = rule && currentCondition(rule, `${node}/BackendsBound`)
      if (condition?.status === 'True')
        return [node, found('TRUE', 'InEffect', `The backends on node ${node} are bound.`)]
      return condition?.status === 'False'
        ? [
            node,
            found(
              'FALSE',
              refusal(condition, 'BindFailed'),
              `Node ${node} says ${said(condition)}.`,
            ),
          ]
        : [node, found('FALSE', 'Progressing', `The backends on node ${node} are not bound yet.`)]
    }),
  )
}

const servingByNode = (rule: NetworkRule, desired: Desired): string[] =>
  Object.values(desired.backends).flatMap(({ address, listed, node }) =>
    listed && conditionOf(rule, `${node}/BackendsBound`)?.status === 'True' ? [address] : [],
  )
