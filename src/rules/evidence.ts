import { canonical } from './addresses.ts'
import type { Desired, DesiredVip } from './desired.ts'
import { found, holds } from './findings.ts'
import { ruleName } from './names.ts'
import { gone, isAhead, type Observed, tracedVips } from './observed.ts'
import { type Proof, prove } from './proof.ts'
import type { BackendReport, Finding, PlacementReport, VipReport } from './report.ts'
import { steps } from './steps.ts'
import type { Wanted } from './wanted.ts'

/** How long what was removed may wait for the data plane before it counts as stuck, in ms. */
export const TEARDOWN_PATIENCE = 60_000

type JudgedVip = { report: VipReport; settled: boolean }

/**
 * Judges by the evidence in a cluster how far what is wanted there is in effect. `now` (RFC 3339)
 * is only compared with the time since when something is being removed; no message holds an age,
 * so equal objects give equal reports.
 */
export const judge = (
  wanted: Wanted,
  desired: Desired,
  observed: Observed,
  now: string,
): PlacementReport => {
  const cluster = judgeCluster(desired, observed)
  const proofs = new Map(
    desired.rules.map((wish) => [wish.metadata.name, prove(wish, desired, observed)]),
  )
  const vips = new Map<string, JudgedVip>()
  for (const [vip, wish] of Object.entries(desired.vips)) {
    const proof = proofs.get(wish.rule)
    vips.set(
      vip,
      proof ? served(wish, proof, cluster, observed, now) : unserved(vip, wish, observed, now),
    )
  }
  for (const vip of tracedVips(desired.loadBalancer, observed))
    if (!vips.has(vip)) vips.set(vip, unserved(vip, leftover(vip, desired), observed, now))
  const { now: toDo, waitingFor } = steps(desired, observed)
  return {
    asked: wanted.asked,
    generation: wanted.generation,
    inEffect:
      holds(cluster) &&
      toDo.length === 0 &&
      waitingFor.length === 0 &&
      [...vips.values()].every(({ settled }) => settled),
    vips: Object.fromEntries([...vips].map(([vip, { report }]) => [vip, report])),
    backends: judgeBackends(desired, [...proofs.values()]),
    affinity: desired.affinity,
    cluster,
  }
}

const judgeCluster = (desired: Desired, observed: Observed): Finding => {
  if (desired.blocked) return desired.blocked
  if (isAhead(desired.rulesGeneration, observed))
    return found(
      'FALSE',
      'StoreBehind',
      'A rule here is of a newer generation than the store knows.',
    )
  if (desired.rules.length > 0 && observed.gateways.length === 0)
    return found('FALSE', 'NoGateway', 'The cluster has no NetworkGateway.')
  return found('TRUE', 'ClusterReady', 'Nothing is wrong with the cluster as a whole.')
}

const served = (
  wish: DesiredVip,
  proof: Proof,
  cluster: Finding,
  observed: Observed,
  now: string,
): JudgedVip => {
  const stuck = stuckSince(
    observed.rules.filter(({ metadata }) => metadata.name === wish.rule),
    now,
  )
  const applied = stuck ?? proof.applied
  const provisioned = stuck ?? (holds(cluster) ? proof.provisioned : cluster)
  const { accepted, advertised } = proof
  return {
    report: { wanted: true, applied, accepted, provisioned, advertised },
    settled: holds(provisioned),
  }
}

/** A VIP without a rule here: because it shouldn't have one, can't have one, or must wait for one. */
const unserved = (vip: string, wish: DesiredVip, observed: Observed, now: string): JudgedVip => {
  const awaited =
    wish.finding.reason === 'SchemaMissing' || wish.finding.reason === 'AddressHeldElsewhere'
  const left = !awaited && !gone(vip, wish.rule, observed)
  const finding = left ? leaving(vip, wish, observed, now) : withoutTrace(vip, wish.finding)
  return {
    report: {
      wanted: awaited,
      applied: finding,
      accepted: finding,
      provisioned: finding,
      advertised: finding,
    },
    settled: !awaited && !left,
  }
}

const leftover = (vip: string, desired: Desired): DesiredVip => ({
  rule: ruleName(desired.loadBalancer, vip),
  wanted: false,
  finding: found('FALSE', 'Withdrawing', `${vip} is not wanted here any more.`),
})

const withoutTrace = (vip: string, finding: Finding): Finding =>
  finding.reason === 'Withdrawing'
    ? found('FALSE', 'Withdrawn', `Nothing of ${vip} is left here.`)
    : finding

const leaving = (vip: string, wish: DesiredVip, observed: Observed, now: string): Finding =>
  stuckSince(
    [
      ...observed.rules.filter(({ metadata }) => metadata.name === wish.rule),
      ...observed.bindings.filter(({ spec }) => canonical(spec.vipAddress) === canonical(vip)),
    ],
    now,
  ) ?? found('FALSE', 'Withdrawing', `${vip} is being removed here.`)

/** Told with its start and not its age, so that looking again doesn't make another report. */
const stuckSince = (
  objects: { metadata: { name: string; deletionTimestamp?: string } }[],
  now: string,
): Finding | undefined => {
  const oldest = objects
    .flatMap(({ metadata: { name, deletionTimestamp: since } }) => (since ? [{ name, since }] : []))
    .toSorted((a, b) => Date.parse(a.since) - Date.parse(b.since))[0]
  if (!oldest || Date.parse(now) - Date.parse(oldest.since) < TEARDOWN_PATIENCE) return undefined
  return found(
    'FALSE',
    'TeardownStuck',
    `${oldest.name} waits since ${oldest.since} for the data plane to let go of it.`,
  )
}

const judgeBackends = (desired: Desired, proofs: Proof[]): Record<string, BackendReport> =>
  Object.fromEntries(
    Object.entries(desired.backends).flatMap(([id, { address, node, placed, listed }]) => {
      if (node === undefined) return []
      const claimed =
        listed && proofs.length > 0 && proofs.every((proof) => proof.claimedNodes.has(node))
      return [
        [
          id,
          {
            serving: proofs.some(({ serving }) => serving.has(canonical(address))),
            placed: claimed
              ? found('FALSE', 'BackendsClaimed', `An older load balancer has claimed ${address}.`)
              : placed,
          },
        ],
      ]
    }),
  )
