import { found, holds } from '../../rules/findings.ts'
import { isReason, REASONS, type Reason } from '../../rules/reasons.ts'
import type { Finding } from '../../rules/report.ts'
import type { FoldBackend, FoldInput } from '../fold.ts'
import { resolution } from '../folding/backends.ts'
import { fresh } from '../folding/probes.ts'
import type { StoredLoadBalancer } from '../loadBalancers/stored.ts'
import type { StatusCondition } from '../records.ts'
import type { Status } from '../status.ts'
import type { Evidence, Facts, Link } from './explanation.ts'

/** So many backends are told of one by one. */
const TOLD = 10

const own = (what: string, value: string, seenAt: string | null = null): Evidence => ({
  what,
  value,
  seenAt,
  cluster: null,
})
const plain = (status: Finding['status'], reason: Reason): Finding =>
  found(status, reason, REASONS[reason])

/** What was asked for is kept; the next change may be refused all the same. */
export const accepted = (stored: StoredLoadBalancer, facts: Facts, status: Status): Link => ({
  ...(facts.vpcOwned ? plain('TRUE', 'Stored') : plain('FALSE', 'VpcNotOwned')),
  evidence: [
    own('Generation asked for', String(stored.generation), stored.updatedAt),
    own('Generation in effect', String(status.observedGeneration)),
    ...(stored.deletingSince === null ? [] : [own('Deletion', 'asked for', stored.deletingSince)]),
    ...(facts.vpcOwned ? [] : [own('VPC', 'not known as one of the project')]),
  ],
  cuts: false,
  slight: !facts.vpcOwned,
})

/** Its addresses are its own, and no cluster may still carry them for somebody else. */
export const addressesHeld = ({ addresses, placements }: FoldInput, facts: Facts): Link => {
  const waiting = addresses.filter(({ address }) =>
    placements?.some(
      ({ placed, report }) =>
        placed && report?.vips[address]?.provisioned.reason === 'AddressHeldElsewhere',
    ),
  )
  const held = addresses.filter(
    (each) => waiting.includes(each) || facts.holds.some(({ address }) => address === each.address),
  )
  const finding =
    addresses.length === 0
      ? plain('FALSE', 'AddressPending')
      : held.length > 0
        ? plain('FALSE', 'AddressHeldElsewhere')
        : plain('TRUE', 'Allocated')
  return {
    ...finding,
    evidence: [
      ...addresses.map(({ address, prefix, reservation }) =>
        own(`Address ${address}`, reservation === null ? `${prefix}, its own` : 'reserved, bound'),
      ),
      ...facts.holds.map(({ address, cluster, since }) => ({
        ...own(`Address ${address}`, 'still with the load balancer that had it before', since),
        cluster,
      })),
    ],
    cuts: held.length === addresses.length,
    slight: false,
  }
}

/** The enabled backends are known in the VPC, and their clusters can use them. */
export const backendsResolved = (input: FoldInput, facts: Facts, status: Status): Link => {
  const enabled = input.backends.filter(({ adminState }) => adminState === 'ENABLED')
  const [first] = input.backends
  if (enabled.length === 0)
    return {
      ...plain('FALSE', 'NoBackends'),
      remedy: first
        ? `Set the adminState of a backend to ENABLED, e.g. of ${first.address}.`
        : 'Add a backend: an address that lives in the VPC in this region (vpc { endpoints } lists them).',
      evidence: [
        own('Enabled backends', `0 of ${input.backends.length}`),
        ...input.backends
          .slice(0, TOLD)
          .map((each) => own(`Backend ${each.address}`, each.adminState)),
      ],
      cuts: true,
      slight: false,
    }
  const judged = enabled.map((backend) => ({ backend, finding: resolution(backend, input) }))
  const missing = judged.filter(({ finding }) => !holds(finding))
  const stale = facts.clusters.filter(({ inventory }) => inventory && inventory.status !== 'TRUE')
  return {
    ...conditionOf(status, 'BackendsResolved'),
    evidence: [
      own(
        'Enabled backends that are usable',
        `${judged.length - missing.length} of ${judged.length}`,
      ),
      ...missing
        .slice(0, TOLD)
        .map(({ backend: { id, address }, finding: { reason, message } }) =>
          own(
            `Backend ${address}`,
            `${reason}: ${message}`,
            status.backends[id]?.resolved.lastTransitionTime ?? null,
          ),
        ),
      ...stale.flatMap(({ name: cluster, inventory }) =>
        inventory === null || missing.length === 0
          ? []
          : [
              {
                ...own('What is known of the VPC', textOf(inventory.reason), inventory.since),
                detail: `${inventory.reason}: ${inventory.message}`,
                cluster,
              },
            ],
      ),
    ],
    cuts: missing.length === judged.length,
    slight: missing.every(({ finding }) => finding.reason === 'AddressFamilyNotServed'),
  }
}

/** Whether those that should serve answer, as far as anybody looks. */
export const backendsHealthy = (input: FoldInput, status: Status): Link => {
  const enabled = input.backends.filter(({ adminState }) => adminState === 'ENABLED')
  const ill = enabled.filter(({ health }) => health.state === 'UNHEALTHY')
  const told = ill.length > 0 ? ill : enabled.filter(({ health }) => health.state === 'UNKNOWN')
  const counts = Map.groupBy(enabled, ({ health }) => health.state)
  return {
    ...conditionOf(status, 'BackendsHealthy'),
    evidence: [
      own(
        'Enabled backends',
        [...counts].map(([state, { length }]) => `${length} ${state}`).join(', ') || 'none',
      ),
      ...told.slice(0, TOLD).map(healthOf),
    ],
    // Of nobody it is known that it answers.
    cuts: enabled.every(({ health }) => ['UNHEALTHY', 'UNKNOWN'].includes(health.state)),
    slight: false,
  }
}

const healthOf = ({ address, health }: FoldBackend): Evidence =>
  own(
    `Backend ${address}`,
    `${health.state} ${health.reason}: ${health.message}`,
    health.lastProbedAt ?? health.since,
  )

/** Whether connections from outside come through: tried, or else what follows from the rest. */
export const reachable = (input: FoldInput, status: Status): Link => {
  const condition = conditionOf(status, 'Reachable')
  const probes = fresh(input.probes ?? [], input.now)
  return {
    ...condition,
    evidence:
      probes.length === 0
        ? [own('Probes from outside', textOf('NotProbed'))]
        : probes.map(({ vantage, address, reachable: through, message, at }) => ({
            ...own(
              `Connection from outside to ${address}`,
              through ? 'comes through' : 'fails',
              at,
            ),
            detail: `${through ? 'comes through' : 'fails'}, seen by ${vantage}${message ? `: ${message}` : ''}`,
          })),
    // It comes last: whatever else is broken comes before.
    cuts: false,
    slight: false,
  }
}

const textOf = (reason: string): string =>
  isReason(reason) ? `${reason}: ${REASONS[reason]}` : reason

const conditionOf = (
  { conditions }: Status,
  type: string,
): Pick<StatusCondition, 'status' | 'reason' | 'message'> => {
  const condition = conditions.find((each) => each.type === type)
  if (condition === undefined) throw new Error(`a status has no ${type}`)
  const { status, reason, message } = condition
  return { status, reason, message }
}
