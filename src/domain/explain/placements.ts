import { found } from '../../rules/findings.ts'
import { REASONS, type Reason } from '../../rules/reasons.ts'
import type { Finding, PlacementReport, VipReport } from '../../rules/report.ts'
import type { FoldInput, FoldPlacement } from '../fold.ts'
import { isCurrent } from '../folding/clusters.ts'
import type { ClusterFacts, Facts } from './explanation.ts'

/** The links that a cluster has a say in. */
export const CLUSTER_LINKS = [
  'RuleApplied',
  'DataPlaneAccepted',
  'Programmed',
  'Advertised',
] as const
export type ClusterLink = (typeof CLUSTER_LINKS)[number]

/** What one cluster says of one address at one link. */
export type Said = {
  finding: Finding
  /** Connections get past this link there, perhaps by an older rule. */
  passes: boolean
  slight: boolean
}

/** What one cluster says of one address; without a link: it has no say there. */
export type Heard = {
  address: string
  cluster: string
  seenAt: string | null
  said: Partial<Record<ClusterLink, Said>>
}

const said = (finding: Finding, passes = finding.status === 'TRUE', slight = false): Said => ({
  finding,
  passes,
  slight,
})
const plain = (status: Finding['status'], reason: Reason): Finding =>
  found(status, reason, REASONS[reason])

const everywhere = (finding: Finding): Heard['said'] =>
  Object.fromEntries(CLUSTER_LINKS.map((link) => [link, said(finding)]))

/** What every cluster says of every address, of those that have a say. */
export const hearAll = (input: FoldInput, facts: Facts): Heard[] =>
  (input.placements ?? []).flatMap((placement) => {
    const { cluster, report, reportedAt, unreachableSince } = placement
    const known = facts.clusters.find(({ name }) => name === cluster)
    const addresses = input.addresses.map(({ address }) => address)
    const leftovers = Object.keys(report?.vips ?? {}).filter((vip) => !addresses.includes(vip))
    return [...addresses, ...leftovers].flatMap((address) => {
      const heard = hear(address, placement, known)
      const seenAt = unreachableSince ?? reportedAt
      return heard === undefined ? [] : [{ address, cluster, seenAt, said: heard }]
    })
  })

const hear = (
  address: string,
  placement: FoldPlacement,
  known: ClusterFacts | undefined,
): Heard['said'] | undefined => {
  const { placed, report, unreachableSince, unreachableReason } = placement
  const vip = report?.vips[address]
  if (unreachableSince !== null) {
    const reason = unreachableReason ?? 'ClusterUnreachable'
    // What its last worker found isn't why nobody serves it.
    const trouble = reason === 'NoWorker' ? undefined : known?.trouble
    const unknown = { ...plain('UNKNOWN', reason), message: trouble ?? REASONS[reason] }
    return placed ? everywhere(unknown) : { RuleApplied: said(unknown) }
  }
  const onItsWay = known?.served === false ? plain('UNKNOWN', 'NoWorker') : undefined
  if (!placed) return leaving(vip, placement, onItsWay)
  if (report === null || vip === undefined)
    return everywhere(onItsWay ?? plain('FALSE', 'Progressing'))
  if (vip.wanted) return serving(report, vip, placement, onItsWay)
  if (vip.provisioned.reason === 'AddressFamilyNotServed')
    return { RuleApplied: said(vip.applied, false, true) }
  return vip.provisioned.reason === 'Withdrawing' || vip.provisioned.reason === 'TeardownStuck'
    ? { RuleApplied: said(vip.provisioned) }
    : undefined
}

/** Nothing of it is wanted in this cluster any more. */
const leaving = (
  vip: VipReport | undefined,
  placement: FoldPlacement,
  onItsWay: Finding | undefined,
): Heard['said'] | undefined => {
  if (!isCurrent(placement)) return { RuleApplied: said(onItsWay ?? plain('FALSE', 'Withdrawing')) }
  return vip && !placement.report?.inEffect ? { RuleApplied: said(vip.provisioned) } : undefined
}

/** These stand against a rule's being written at all. */
const AGAINST_WRITING: ReadonlySet<Reason> = new Set([
  'SchemaMissing',
  'NamespaceMissing',
  'RightsMissing',
  'ApplyFailed',
])
/** These are about announcing, which has a link of its own. */
const ANNOUNCING: ReadonlySet<Reason> = new Set(['NotAdvertised', 'PartlyAdvertised'])

const serving = (
  report: PlacementReport,
  vip: VipReport,
  placement: FoldPlacement,
  onItsWay: Finding | undefined,
): Heard['said'] => {
  const { cluster } = report
  const { accepted, advertised } = vip
  const standing = accepted.status === 'TRUE'
  const refused = AGAINST_WRITING.has(cluster.reason) ? cluster : undefined
  const behind = isCurrent(placement) ? undefined : (onItsWay ?? plain('FALSE', 'Progressing'))
  const serves = Object.values(report.backends).some((backend) => backend.serving)
  const programmed = ANNOUNCING.has(vip.provisioned.reason)
    ? plain('TRUE', 'InEffect')
    : vip.provisioned
  return {
    RuleApplied: said(
      behind ?? (cluster.reason === 'StoreBehind' ? cluster : applied(vip, refused)),
      vip.applied.status === 'TRUE' || (standing && (behind !== undefined || serves)),
    ),
    DataPlaneAccepted: said(accepted),
    Programmed: said(
      behind ?? (programmed.reason === 'Progressing' ? (refused ?? programmed) : programmed),
      programmed.status === 'TRUE' || (programmed.status === 'FALSE' && standing && serves),
    ),
    Advertised: said(
      advertised,
      advertised.status === 'TRUE' || advertised.reason === 'PartlyAdvertised',
    ),
  }
}

/** That somebody edited it says more than that it couldn't be put right. */
const applied = (vip: VipReport, refused: Finding | undefined): Finding =>
  vip.applied.status === 'TRUE' || vip.applied.reason === 'RuleEdited'
    ? vip.applied
    : (refused ?? vip.applied)
