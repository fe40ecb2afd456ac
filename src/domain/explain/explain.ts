import { found } from '../../rules/findings.ts'
import { isReason, REASONS } from '../../rules/reasons.ts'
import { REMEDIES } from '../../rules/remedies.ts'
import type { Finding } from '../../rules/report.ts'
import type { VantageProbe } from '../folding/probes.ts'
import { foldInputOf, foldStored, type StoredLoadBalancer } from '../loadBalancers/stored.ts'
import { clusterLinks } from './clusterLinks.ts'
import {
  type Explanation,
  type ExplanationStep,
  type Facts,
  LINKS,
  type Link,
  type LinkName,
} from './explanation.ts'
import {
  accepted,
  addressesHeld,
  backendsHealthy,
  backendsResolved,
  reachable,
} from './ownLinks.ts'

/** A load balancer and what is known around it at one instant. */
export type Explained = {
  stored: StoredLoadBalancer
  probes: VantageProbe[]
  facts: Facts
  now: string
}

/**
 * Walks the chain from what was accepted to what is reached. The first broken link is the first that
 * nothing gets past; where connections are carried, the first that isn't whole.
 */
export const explain = ({ stored, probes, facts, now }: Explained): Explanation => {
  const input = foldInputOf(stored, now, probes)
  const status = foldStored(stored, now, probes)
  const resolved = backendsResolved(input, facts, status)
  const idle = whyIdle(input.loadBalancer.deleting, resolved)
  const links: Record<LinkName, Link> = {
    Accepted: accepted(stored, facts, status),
    AddressesHeld: addressesHeld(input, facts),
    BackendsResolved: resolved,
    ...clusterLinks(input, facts, idle),
    BackendsHealthy: backendsHealthy(input, status),
    Reachable: reachable(input, status),
  }
  const steps = LINKS.map((name) => stepOf(name, links[name]))
  const first = (broken: (link: Link) => boolean): ExplanationStep | undefined =>
    steps.find(({ name }) => links[name].status !== 'TRUE' && broken(links[name]))
  const carried = links.Reachable.status === 'TRUE'
  // What a load balancer that is being deleted lacks is no obstacle; what keeps it from going is.
  const leaving = input.loadBalancer.deleting
  const firstBroken =
    (leaving ? steps.find(({ name }) => name === 'RuleApplied') : undefined) ??
    (carried ? undefined : first(({ cuts }) => cuts)) ??
    first(({ slight }) => !slight) ??
    first(() => true)
  return { reachable: carried, firstBroken: firstBroken ?? null, steps }
}

/** Why no cluster is to serve it, told where none says anything. */
const whyIdle = (deleting: boolean, { cuts, reason }: Link): Finding => {
  const why = deleting ? 'Deleting' : cuts && isReason(reason) ? reason : 'Progressing'
  return found('FALSE', why, REASONS[why])
}

const stepOf = (name: LinkName, link: Link): ExplanationStep => {
  const { status, reason, message, evidence } = link
  const known = isReason(reason) ? REMEDIES[reason] : null
  const remedy = status === 'TRUE' ? null : (link.remedy ?? known)
  return { name, status, reason, message, remedy, evidence }
}
