import { found, holds, firstAgainst as worst } from '../rules/findings.ts'
import { REASONS } from '../rules/reasons.ts'
import type { Finding } from '../rules/report.ts'
import { type Stamp, stampAt } from './conditions.ts'
import { allHealthy, allResolved, isServing, resolution } from './folding/backends.ts'
import { firstAgainst, inWords, provisioning } from './folding/clusters.ts'
import type { FoldInput } from './folding/input.ts'
import { verdict } from './folding/phase.ts'
import { foldVip, type VipFindings } from './folding/vips.ts'
import type { HealthState } from './records.ts'
import type { Status, VipStatus } from './status.ts'

export type { FoldBackend, FoldInput, FoldPlacement } from './folding/input.ts'

/**
 * Folds the reports of all clusters into one status. With its own answer as `previous` it answers
 * the same again, so that nothing is written and no event follows where nothing changed.
 */
export const fold = (unordered: FoldInput): Status => {
  const input = inOrder(unordered)
  const { loadBalancer, backends, addresses } = input
  const observedGeneration = settledGeneration(input)
  const before = input.previous ?? statusAtCreation(input)
  const stamp = stampAt(input.now, observedGeneration)

  const enabled = backends.filter(({ adminState }) => adminState === 'ENABLED')
  const resolutions = new Map(backends.map((each) => [each.id, resolution(each, input)]))
  const idle = whyIdle(enabled.map(({ id }) => resolutions.get(id)))
  const health = allHealthy(enabled, resolutions, loadBalancer.minimumHealthyPercent ?? 0)
  const alive = anyAlive(enabled.map((each) => each.health.state))
  const vips = addresses.map(({ address, family }) => ({
    address,
    family,
    ...foldVip(address, input, idle ?? found('FALSE', 'Progressing', REASONS.Progressing), alive),
  }))

  const allocated =
    addresses.length > 0
      ? found('TRUE', 'Allocated', REASONS.Allocated)
      : found('FALSE', 'AddressPending', REASONS.AddressPending)
  const provisioned = wholeProvisioned(input)
  const counted = vips.filter(({ notServed }) => !notServed)
  const together = (pick: (vip: VipFindings) => Finding, otherwise: Finding) =>
    worst(counted.map(pick), counted[0] ? pick(counted[0]) : otherwise)
  const none = allocated.status === 'TRUE' ? (vips[0]?.advertised ?? allocated) : allocated
  const advertised = together((vip) => vip.advertised, none)
  const reachable = together((vip) => vip.reachable, none)
  const { phase, ready } = verdict({
    deleting: loadBalancer.deleting,
    observedGeneration,
    previous: input.previous,
    idle,
    chain: [
      allocated,
      provisioned.finding,
      advertised,
      ...counted.map(({ carried }) => plain(carried)),
    ],
    vips,
    impaired:
      provisioned.impaired ||
      enabled.some((each) => each.health.state === 'UNHEALTHY') ||
      enabled.some(({ id }) => isMissing(resolutions.get(id))),
  })

  const findings: [string, Finding][] = [
    ['Ready', ready],
    ['AddressesAllocated', allocated],
    ['BackendsResolved', allResolved(enabled, resolutions)],
    ['Provisioned', provisioned.finding],
    ['Advertised', advertised],
    ['BackendsHealthy', health],
    ['Reachable', reachable],
    ...ipv4Served(vips.filter(({ family }) => family === 'IPV4')),
    ...affinityHonoured(input),
  ]
  return {
    phase,
    observedGeneration,
    conditions: findings.map(([type, finding]) =>
      stamp(
        type,
        finding,
        before?.conditions.find((each) => each.type === type),
      ),
    ),
    vips: Object.fromEntries(
      vips.map(({ address, ...vip }) => [address, vipStatus(vip, stamp, before?.vips[address])]),
    ),
    backends: Object.fromEntries(
      backends.map((backend) => [
        backend.id,
        {
          resolved: stamp(
            'Resolved',
            resolutions.get(backend.id) ?? resolution(backend, input),
            before?.backends[backend.id]?.resolved,
          ),
          serving: isServing(backend, input),
        },
      ]),
    ),
  }
}

/** The same clusters in another order are the same answer. */
const inOrder = (input: FoldInput): FoldInput => ({
  ...input,
  placements: input.placements?.toSorted((a, b) => (a.cluster < b.cluster ? -1 : 1)) ?? null,
})

/** What is shown before the first fold; undefined where that is what is being folded. */
const statusAtCreation = (input: FoldInput): Status | undefined =>
  input.placements === null
    ? undefined
    : fold({ ...input, now: input.loadBalancer.createdAt, placements: null })

/** Moves when all that should serve does and all that should be gone is; health never lowers it. */
const settledGeneration = ({ loadBalancer, placements, previous }: FoldInput): number => {
  const { generation, rulesGeneration } = loadBalancer
  const before = previous?.observedGeneration ?? 0
  const settled = placements?.every((each) => each.settledGeneration >= rulesGeneration) ?? false
  return settled ? Math.max(before, generation) : before
}

const plain = ({ status, reason, message }: Finding): Finding => ({ status, reason, message })

/** Why nothing should serve it; undefined where something should. */
const whyIdle = (resolutions: (Finding | undefined)[]): Finding | undefined => {
  const [first] = resolutions
  if (!first) return found('FALSE', 'NoBackends', REASONS.NoBackends)
  return resolutions.some((each) => each !== undefined && holds(each)) ? undefined : first
}

/** Not there, or kept out. A family that isn't served is no fault of the load balancer. */
const isMissing = (resolution: Finding | undefined): boolean =>
  resolution?.status !== 'TRUE' && resolution?.reason !== 'AddressFamilyNotServed'

/** Whether any enabled backend answers, as far as anybody looks. */
const anyAlive = (states: HealthState[]): Finding => {
  if (states.some((state) => state === 'HEALTHY' || state === 'NOT_CHECKED'))
    return found('TRUE', 'Healthy', REASONS.Healthy)
  if (states.includes('UNKNOWN')) return found('UNKNOWN', 'NotProbedYet', REASONS.NotProbedYet)
  return states.length === 0
    ? found('FALSE', 'NoBackends', REASONS.NoBackends)
    : found('FALSE', 'AllUnhealthy', REASONS.AllUnhealthy)
}

/** `impaired`: something failed or isn't known, as opposed to being on its way. */
const wholeProvisioned = (input: FoldInput): { finding: Finding; impaired: boolean } => {
  const { placements } = input
  if (placements === null)
    return { finding: found('FALSE', 'Progressing', REASONS.Progressing), impaired: false }
  const words = placements.map((placement) => provisioning(placement, input))
  const against = firstAgainst(words)
  if (!against) return { finding: found('TRUE', 'InEffect', REASONS.InEffect), impaired: false }
  return {
    finding: inWords(against, words, placements.length),
    impaired: words.some(({ status, open }) => status !== 'TRUE' && !open),
  }
}

const ipv4Served = (vips: VipFindings[]): [string, Finding][] => {
  const [first] = vips
  if (!first) return []
  const served = found('TRUE', 'Served', REASONS.Served)
  const advertised = vips.map((vip) => vip.advertised)
  return [['IPv4Served', worst(advertised, served)]]
}

const affinityHonoured = ({ loadBalancer, placements }: FoldInput): [string, Finding][] => {
  if (loadBalancer.sessionAffinity === 'NONE') return []
  const said = (placements ?? []).flatMap(({ placed, report }) =>
    placed && report ? [report.affinity] : [],
  )
  const [first] = said
  const silent = found('UNKNOWN', 'Progressing', REASONS.Progressing)
  const { status, reason } = first ? worst(said, first) : silent
  return [['AffinityHonoured', found(status, reason, REASONS[reason])]]
}

const vipStatus = (vip: VipFindings, stamp: Stamp, before: VipStatus | undefined): VipStatus => ({
  provisioned: stamp('Provisioned', vip.provisioned, before?.provisioned),
  advertised: stamp('Advertised', vip.advertised, before?.advertised),
  reachable: stamp('Reachable', vip.reachable, before?.reachable),
})
