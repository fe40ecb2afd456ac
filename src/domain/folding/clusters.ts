import { found } from '../../rules/findings.ts'
import { REASONS, type Reason } from '../../rules/reasons.ts'
import type { Finding } from '../../rules/report.ts'
import type { FoldInput, FoldPlacement } from './input.ts'

/** One cluster's word on something. `open`: it may yet turn out well by itself. */
export type Word = Finding & {
  open: boolean
  /** Since when the cluster hasn't answered. */
  since?: string
}

/** These say that something is on its way, not that it failed. */
const OPEN: ReadonlySet<Reason> = new Set([
  'Progressing',
  'Withdrawing',
  'AddressHeldElsewhere',
  'RuleEdited',
])

/** Before a generation has been in effect in a cluster these only mean "not yet". */
const OPEN_UNTIL_SETTLED: ReadonlySet<Reason> = new Set(['NotAdvertised', 'PartlyAdvertised'])

/** Whether the rules as they are wanted now have been in effect in the cluster before. */
const hasSettled = (placement: FoldPlacement, input: FoldInput): boolean =>
  placement.settledGeneration >= input.loadBalancer.rulesGeneration

/** A cluster's finding, read in the light of how far it had come before. */
export const wordOf = (finding: Finding, placement: FoldPlacement, input: FoldInput): Word => {
  const notYet = OPEN_UNTIL_SETTLED.has(finding.reason) && !hasSettled(placement, input)
  const reason = notYet ? 'Progressing' : finding.reason
  const { status } = finding
  return { status, reason, message: REASONS[reason], open: status === 'FALSE' && OPEN.has(reason) }
}

/** Nothing has been heard of it yet. */
export const onItsWay: Word = { ...found('FALSE', 'Progressing', REASONS.Progressing), open: true }

/** What the reports knew may still be so; nobody can tell. */
export const unreachable = (
  since: string,
  { unreachableReason }: Pick<FoldPlacement, 'unreachableReason'>,
): Word => {
  const reason = unreachableReason ?? 'ClusterUnreachable'
  return { ...found('UNKNOWN', reason, REASONS[reason]), open: false, since }
}

/** Whether the last report is about all that was asked so far. */
export const isCurrent = ({ report, asked }: FoldPlacement): boolean =>
  report !== null && report.asked >= asked

/** Whether what is wanted in one cluster is in effect there. */
export const provisioning = (placement: FoldPlacement, input: FoldInput): Word => {
  const { report, unreachableSince } = placement
  if (unreachableSince !== null) return unreachable(unreachableSince, placement)
  if (report === null || !isCurrent(placement)) return onItsWay
  if (report.inEffect) return { ...found('TRUE', 'InEffect', REASONS.InEffect), open: false }
  const findings = Object.values(report.vips).flatMap(({ wanted, provisioned }) =>
    wanted || provisioned.reason === 'Withdrawing' || provisioned.reason === 'TeardownStuck'
      ? [provisioned]
      : [],
  )
  const words = [report.cluster, ...findings].map((each) => wordOf(each, placement, input))
  const against = firstAgainst(words)
  return against && against.reason !== 'Withdrawing' ? against : onItsWay
}

/** What speaks most against it: a plain no, then what is on its way, then what nobody knows. */
export const firstAgainst = (words: Word[]): Word | undefined =>
  words.find(({ status, open }) => status === 'FALSE' && !open) ??
  words.find(({ status }) => status === 'FALSE') ??
  words.find(({ status }) => status === 'UNKNOWN')

/**
 * The same for tenants, who know of no clusters but how many there are. `words` are those of
 * `total` clusters.
 */
export const inWords = (chosen: Word, words: Word[], total: number): Finding => {
  const { status, reason } = chosen
  const alike = words.filter((word) => word.status === status && word.reason === reason)
  const { length: count } = alike
  if (reason === 'ClusterUnreachable' || reason === 'NoWorker') {
    const since = alike.map((word) => word.since ?? '').toSorted()[0] ?? ''
    const who =
      total <= 1
        ? "the region's cluster"
        : count === 1
          ? `one of the region's ${total} clusters`
          : `${count} of the region's ${total} clusters`
    const what =
      reason === 'NoWorker'
        ? `Nobody has looked after ${who} since ${since}`
        : `${who.replace(/^./, (first) => first.toUpperCase())} ${total <= 1 || count === 1 ? 'has' : 'have'} not answered since ${since}`
    return found(status, reason, `${what}; what is served there is not known.`)
  }
  const text = REASONS[reason]
  return found(
    status,
    reason,
    count === 0 || count >= total ? text : `In ${count} of the region's ${total} clusters: ${text}`,
  )
}
