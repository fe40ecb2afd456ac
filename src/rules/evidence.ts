import { canonical } from './addresses.ts'
import type { Desired, DesiredVip } from './desired.ts'
import { found, holds } from './findings.ts'
import { ruleName } from './names.ts'
import { gone, isAhead, type Observed, tracedVips } from './observed.ts'
import { type Proof, prove, servingStill } from './proof.ts'
import type { Reason } from './reasons.ts'
import type { BackendReport, Finding, PlacementReport, VipReport } from './report.ts'
import { type Steps, steps } from './steps.ts'
import type { Wanted } from './wanted.ts'

/** How long what was removed may wait for the data plane before it counts as stuck, in ms. */
export const TEARDOWN_PATIENCE = 60_000

type JudgedVip = { report: VipReport; settled: boolean }

/**
 * Judges by the evidence in a cluster how far what is wanted there is in effect. `now` (RFC 3339)
 * is only compared with the time since when something is being removed; no message holds an age,
 * so equal objects give equal reports. `left`: what is to be done yet, where the caller knows it.
 */
export const judge = (
  wanted: Wanted,
  desired: Desired,
  observed: Observed,
  now: string,
  patience: number = TEARDOWN_PATIENCE,
  left: Steps = steps(desired, observed),
): PlacementReport => {
  const cluster = judgeCluster(desired, observed)
  const proofs = new Map(
    desired.rules.map((wish) => [wish.metadata.name, prove(wish, desired, observed)]),
  )
  const stuck = (vip: string, wish: DesiredVip, observed: Observed) =>
    stuckSince(leavingWith(vip, wish, observed), now, patience)
  const vips = new Map<string, JudgedVip>()
  for (const [vip, wish] of Object.entries(desired.vips)) {
    const proof = proofs.get(wish.rule)
    vips.set(
      vip,
      proof
        ? served(proof, cluster, stuck(vip, wish, observed))
        : unserved(vip, wish, observed, stuck(vip, wish, observed)),
    )
  }
  for (const vip of tracedVips(desired.loadBalancer, observed))
    if (!vips.has(vip)) {
      const wish = leftover(vip, desired)
      vips.set(vip, unserved(vip, wish, observed, stuck(vip, wish, observed)))
    }
  return {
    asked: wanted.asked,
    generation: wanted.generation,
    inEffect:
      holds(cluster) &&
      left.now.length === 0 &&
      left.waitingFor.length === 0 &&
      [...vips.values()].every(({ settled }) => settled),
    vips: Object.fromEntries([...vips].map(([vip, { report }]) => [vip, report])),
    backends: judgeBackends(desired, observed, proofs),
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
  const full = Object.values(desired.vips).find(({ finding }) => finding.reason === 'ClusterFull')
  if (full && desired.rules.length === 0) return full.finding
  return found('TRUE', 'ClusterReady', 'Nothing is wrong with the cluster as a whole.')
}

const served = (proof: Proof, cluster: Finding, stuck: Finding | undefined): JudgedVip => {
  const applied = holds(proof.applied) ? proof.applied : (stuck ?? proof.applied)
  const provisioned = stuck ?? (holds(cluster) ? proof.provisioned : cluster)
  const { accepted, advertised } = proof
  return {
    report: { wanted: true, applied, accepted, provisioned, advertised },
    settled: holds(provisioned),
  }
}

/** These are only waited for: the VIP gets its rule as soon as they are no more. */
const AWAITED: ReadonlySet<Reason> = new Set([
  'SchemaMissing',
  'AddressHeldElsewhere',
  'ClusterFull',
])

/** A VIP without a rule here: because it shouldn't have one, can't have one, or must wait for one. */
const unserved = (
  vip: string,
  wish: DesiredVip,
  observed: Observed,
  stuck: Finding | undefined,
): JudgedVip => {
  const awaited = AWAITED.has(wish.finding.reason)
  const left = !awaited && !gone(vip, wish.rule, observed)
  const finding = left
    ? (stuck ?? found('FALSE', 'Withdrawing', `${vip} is being removed here.`))
    : withoutTrace(vip, wish.finding)
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

type Leaving = { metadata: { name: string; deletionTimestamp?: string } }

/** What is in the way of a VIP while it is being removed: its own objects, and those in its place. */
const leavingWith = (vip: string, wish: DesiredVip, observed: Observed): Leaving[] => [
  ...observed.rules.filter(({ metadata }) => metadata.name === wish.rule),
  ...observed.bindings.filter(({ spec }) => canonical(spec.vipAddress) === canonical(vip)),
  ...(observed.rivals ?? []),
]

/** Told with its start and not its age, so that looking again doesn't make another report. */
const stuckSince = (objects: Leaving[], now: string, patience: number): Finding | undefined => {
  const [oldest] = inDeletion(objects)
  if (!oldest || Date.parse(now) - Date.parse(oldest.since) < patience) return undefined
  return found(
    'FALSE',
    'TeardownStuck',
    `${oldest.name} waits since ${oldest.since} for the data plane to let go of it.`,
  )
}

const inDeletion = (objects: Leaving[]): { name: string; since: string }[] =>
  objects
    .flatMap(({ metadata: { name, deletionTimestamp: since } }) => (since ? [{ name, since }] : []))
    .toSorted((a, b) => Date.parse(a.since) - Date.parse(b.since))

/**
 * When (ms from now) a judgement of the same objects may be another: the next removal will have
 * taken too long. undefined: never.
 */
export const judgeAgainIn = (
  observed: Observed,
  now: string,
  patience: number = TEARDOWN_PATIENCE,
): number | undefined =>
  inDeletion([...observed.rules, ...observed.bindings, ...(observed.rivals ?? [])])
    .map(({ since }) => Date.parse(since) + patience - Date.parse(now))
    .find((rest) => rest > 0)

const judgeBackends = (
  desired: Desired,
  observed: Observed,
  proofsByRule: ReadonlyMap<string, Proof>,
): Record<string, BackendReport> => {
  const proofs = [...proofsByRule.values()]
  const leaving = observed.rules.filter(({ metadata }) => !proofsByRule.has(metadata.name))
  const serving = new Set([
    ...proofs.flatMap((proof) => proof.serving),
    ...leaving.flatMap((rule) => servingStill(rule, desired, observed)),
  ])
  return Object.fromEntries(
    Object.entries(desired.backends).flatMap(([id, { address, node, placed, listed }]) => {
      if (node === undefined) return []
      const claimed =
        listed && proofs.length > 0 && proofs.every((proof) => proof.claimedNodes.has(node))
      return [
        [
          id,
          {
            serving: serving.has(canonical(address)),
            placed: claimed
              ? found('FALSE', 'BackendsClaimed', `An older load balancer has claimed ${address}.`)
              : placed,
          },
        ],
      ]
    }),
  )
}
