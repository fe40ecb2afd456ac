import { found } from '../../rules/findings.ts'
import { REASONS } from '../../rules/reasons.ts'
import type { Finding } from '../../rules/report.ts'
import type { FoldInput } from '../fold.ts'
import { inWords, type Word } from '../folding/clusters.ts'
import type { Evidence, Facts, Link } from './explanation.ts'
import { type ClusterLink, type Heard, hearAll, type Said } from './placements.ts'

const WHAT: Record<ClusterLink, string> = {
  RuleApplied: 'The rule of',
  DataPlaneAccepted: 'What the data plane says of',
  Programmed: 'Gateways and machines of the backends, for',
  Advertised: 'The announcement of',
}

/**
 * The links that clusters have a say in. `idle`: why no cluster should serve it, told where none
 * says anything.
 */
export const clusterLinks = (
  input: FoldInput,
  facts: Facts,
  idle: Finding,
): Record<ClusterLink, Link> => {
  const heard = hearAll(input, facts)
  const affinity = affinityWords(input)
  const link = (name: ClusterLink, through: Heard[], more: Told[] = []): Link =>
    linkOf(name, { heard, through, more, idle, total: input.placements?.length ?? 0 })
  const applied = passing('RuleApplied', heard)
  const accepted = passing('DataPlaneAccepted', applied)
  const programmed = passing('Programmed', accepted)
  return {
    RuleApplied: withTroubles(link('RuleApplied', applied, affinity), facts),
    DataPlaneAccepted: link('DataPlaneAccepted', accepted),
    Programmed: withTroubles(link('Programmed', programmed), facts),
    Advertised: link('Advertised', passing('Advertised', programmed)),
  }
}

/** Those addresses in those clusters whose connections get past a link. */
const passing = (link: ClusterLink, heard: Heard[]): Heard[] =>
  heard.filter(({ said }) => said[link]?.passes)

type Told = { said: Said; evidence: Evidence }

const linkOf = (
  name: ClusterLink,
  {
    heard,
    through,
    more,
    idle,
    total,
  }: { heard: Heard[]; through: Heard[]; more: Told[]; idle: Finding; total: number },
): Link => {
  const told: Told[] = [
    ...heard.flatMap((each) => {
      const said = each.said[name]
      return said ? [{ said, evidence: evidenceOf(name, each, said.finding) }] : []
    }),
    ...more,
  ]
  const worst = told.map(({ said }) => said).toSorted((a, b) => rank(a) - rank(b))[0]
  const carriers = told.filter(({ said }) => !said.slight)
  if (worst === undefined) return { ...idle, evidence: [], cuts: true, slight: false }
  const { reason } = worst.finding
  const words = told.map(({ said, evidence }): Word => {
    const { seenAt: since } = evidence
    const word = { ...said.finding, open: false }
    return since === null ? word : { ...word, since }
  })
  const chosen = words.find((word) => word.reason === reason) ?? { ...worst.finding, open: false }
  return {
    ...inWords(chosen, onePerCluster(words, told), total),
    evidence: told.map(({ evidence }) => evidence),
    cuts: through.length === 0 && carriers.length > 0,
    slight: worst.slight,
  }
}

/** A sentence counts clusters, not addresses. */
const onePerCluster = (words: Word[], told: Told[]): Word[] => {
  const seen = new Set<string>()
  return words.filter(({ reason }, index) => {
    const key = `${told[index]?.evidence.cluster} ${reason}`
    return !seen.has(key) && seen.add(key)
  })
}

const ON_ITS_WAY = new Set(['Progressing', 'Withdrawing'])

/** What stands most against it comes first. */
const rank = ({ finding: { status, reason }, slight }: Said): number => {
  if (status === 'TRUE') return 4
  if (slight) return 3
  if (status === 'UNKNOWN') return 2
  return ON_ITS_WAY.has(reason) ? 1 : 0
}

const evidenceOf = (name: ClusterLink, heard: Heard, finding: Finding): Evidence => {
  const { status, reason, message } = finding
  return {
    what: `${WHAT[name]} ${heard.address}`,
    value: `${status} ${reason}: ${REASONS[reason]}`,
    detail: `${status} ${reason}: ${message}`,
    seenAt: heard.seenAt,
    cluster: heard.cluster,
  }
}

/** The affinity that was asked for is part of the rule. */
const affinityWords = ({ loadBalancer, placements }: FoldInput): Told[] => {
  if (loadBalancer.sessionAffinity === 'NONE') return []
  return (placements ?? []).flatMap(({ cluster, placed, report, reportedAt, unreachableSince }) => {
    if (!placed || report === null || unreachableSince !== null) return []
    const { status, reason } = report.affinity
    if (status !== 'FALSE') return []
    const finding = found(status, reason, REASONS[reason])
    const value = `${status} ${reason}: ${REASONS[reason]}`
    return [
      {
        said: { finding, passes: true, slight: true },
        evidence: { what: 'Session affinity', value, seenAt: reportedAt, cluster },
      },
    ]
  })
}

/** What clusters answered to what was written, in their words, where that stands against a link. */
const withTroubles = (link: Link, { clusters }: Facts): Link => {
  if (link.status === 'TRUE') return link
  const troubles = clusters.flatMap(({ name: cluster, lastError, attempts }) =>
    lastError === null
      ? []
      : [
          {
            what: `The last of ${attempts} failures in a row`,
            value: lastError,
            seenAt: null,
            cluster,
            operatorsOnly: true,
          },
        ],
  )
  return { ...link, evidence: [...link.evidence, ...troubles] }
}
