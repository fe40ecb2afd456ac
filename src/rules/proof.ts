import { bindingFindings, servingByBinding } from './bindingProof.ts'
import { isAsWanted } from './comparison.ts'
import type { Desired } from './desired.ts'
import { editorOf } from './editor.ts'
import { firstAgainst, found, holds } from './findings.ts'
import type { NetworkRule } from './objects.ts'
import { conditionOf, type Observed, said, vipsOf } from './observed.ts'
import type { Finding } from './report.ts'
import { advertisedFinding, routeFinding } from './routes.ts'
import { boundNodes, isProgrammed, programmedFinding, servingByNode } from './selectorProof.ts'

/** What a cluster proves about one wanted rule. */
export type Proof = {
  applied: Finding
  accepted: Finding
  provisioned: Finding
  advertised: Finding
  /** Addresses of the backends that the rule, as it stands there now, sends connections to. */
  serving: string[]
  /** Backend nodes where an older load balancer holds the data plane's one place. */
  claimedNodes: Set<string>
}

/** Gathers the evidence for one wanted rule. */
export const prove = (wish: NetworkRule, desired: Desired, observed: Observed): Proof => {
  const rule = observed.rules.find(({ metadata }) => metadata.name === wish.metadata.name)
  const applied = appliedFinding(wish, rule)
  const accepted = acceptedFinding(rule, observed)
  const selector = desired.dialect === 'selector'
  const routes = observed.gateways.map((gateway) => {
    const programmed = selector && rule ? programmedFinding(gateway, rule) : undefined
    return { programmed, route: routeFinding(gateway, wish, observed, programmed) }
  })
  const nodes: ReadonlyMap<string, Finding> = selector ? boundNodes(rule, desired) : new Map()
  const bound = selector ? [...nodes.values()] : bindingFindings(wish, desired, observed)
  const announced = routes.some(({ route }) => route.status !== 'FALSE')
  return {
    applied,
    accepted,
    advertised: advertisedFinding(routes.map(({ route }) => route)),
    provisioned: firstAgainst(
      [
        applied,
        accepted,
        ...allClaimed(bound),
        ...routes.flatMap(({ programmed }) => programmed ?? []),
        ...withoutClaimed(bound),
        ...routes.map(({ route }) => route),
      ],
      found('TRUE', 'InEffect', 'The rule is in effect at every gateway and every backend.'),
    ),
    serving: rule && announced ? servingOf(rule, desired, observed) : [],
    claimedNodes: new Set(
      [...nodes].flatMap(([node, { reason }]) => (reason === 'BackendsClaimed' ? [node] : [])),
    ),
  }
}

/**
 * Whom a rule that isn't wanted any more sends connections to: it does what it did until it is gone, and
 * in a cluster that can't be reached that is long.
 */
export const servingStill = (rule: NetworkRule, desired: Desired, observed: Observed): string[] => {
  const announced =
    vipsOf(rule).length > 0 &&
    observed.gateways.some(
      (gateway) => routeFinding(gateway, rule, observed, undefined).status !== 'FALSE',
    )
  return announced ? servingOf(rule, desired, observed) : []
}

/** Whom a rule that is announced sends connections to, as it stands there now. */
const servingOf = (rule: NetworkRule, desired: Desired, observed: Observed): string[] => {
  const selector = desired.dialect === 'selector'
  const carries =
    rule.metadata.deletionTimestamp === undefined &&
    holds(acceptedFinding(rule, observed)) &&
    (!selector || observed.gateways.some((gateway) => isProgrammed(gateway, rule)))
  if (!carries) return []
  return (selector ? servingByNode : servingByBinding)(rule, desired, observed)
}

/**
 * A claimed node is kept out as a conflict is, and the rest is in effect without it; where nothing
 * else is left, that is what stands against it.
 */
const withoutClaimed = (bound: Finding[]): Finding[] => {
  const others = bound.filter(({ reason }) => reason !== 'BackendsClaimed')
  return others.length > 0 ? others : bound
}

/** Where an older load balancer serves all of them, gateways only say that nothing is left to load. */
const allClaimed = (bound: Finding[]): Finding[] =>
  bound.every(({ reason }) => reason === 'BackendsClaimed') ? bound : []

const appliedFinding = (wish: NetworkRule, rule: NetworkRule | undefined): Finding => {
  if (!rule) return found('FALSE', 'Progressing', 'The rule is not in the cluster yet.')
  if (rule.metadata.deletionTimestamp !== undefined)
    return found(
      'FALSE',
      'Progressing',
      'The rule was deleted and is written anew once it is gone.',
    )
  if (isAsWanted(wish, rule))
    return found('TRUE', 'Applied', 'The rule is in the cluster as it should be.')
  const editor = editorOf(rule)
  return editor === undefined
    ? found('FALSE', 'Progressing', 'The rule in the cluster is not yet as it should be.')
    : found('FALSE', 'RuleEdited', `${editor} changed the rule.`)
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
