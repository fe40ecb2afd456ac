import type { Finding, TruthValue } from '../../rules/report.ts'

/** The chain from a change that was accepted to a client that gets an answer, in its order. */
export const LINKS = [
  'Accepted',
  'AddressesHeld',
  'BackendsResolved',
  'RuleApplied',
  'DataPlaneAccepted',
  'Programmed',
  'Advertised',
  'BackendsHealthy',
  'Reachable',
] as const
export type LinkName = (typeof LINKS)[number]

/** What a step rests on. Names of clusters and nodes are for operators only. */
export type Evidence = {
  what: string
  value: string
  /** What operators are told instead of `value`. */
  detail?: string
  /** When it was seen; null: it is so by the store itself. */
  seenAt: string | null
  /** The cluster's name. */
  cluster: string | null
  operatorsOnly?: boolean
}

export type ExplanationStep = {
  name: LinkName
  status: TruthValue
  reason: string
  message: string
  remedy: string | null
  evidence: Evidence[]
}

export type Explanation = {
  reachable: boolean
  firstBroken: ExplanationStep | null
  steps: ExplanationStep[]
}

/** One link as it was judged. */
export type Link = Omit<Finding, 'reason'> & {
  /** One of the listed reasons. */
  reason: string
  /** Instead of the reason's own. */
  remedy?: string
  evidence: Evidence[]
  /** Nothing comes any further than here. */
  cuts: boolean
  /** It is only that less than what was asked for is served; connections are carried all the same. */
  slight: boolean
}

/** What the fold doesn't need, and an explanation tells. */
export type Facts = {
  /** The clusters of the region by their names say that the VPC is the project's. */
  vpcOwned: boolean
  clusters: ClusterFacts[]
  /** That clusters may still carry addresses for other load balancers. */
  holds: { address: string; cluster: string; since: string }[]
}

export type ClusterFacts = {
  name: string
  /** A worker serves it. */
  served: boolean
  /** What stands against its being served, in its own words; null where nothing does. */
  trouble: string | null
  /** How what was to be written for this load balancer failed last, and how often in a row. */
  lastError: string | null
  attempts: number
  /** What is known of its endpoints. */
  inventory: (Pick<Finding, 'status' | 'message'> & { reason: string; since: string }) | null
}
