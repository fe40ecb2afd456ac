import { found } from '../../rules/findings.ts'
import { REASONS } from '../../rules/reasons.ts'
import type { Finding, PlacementReport, VipReport } from '../../rules/report.ts'
import {
  firstAgainst,
  inWords,
  isCurrent,
  onItsWay,
  unreachable,
  type Word,
  wordOf,
} from './clusters.ts'
import type { FoldInput, FoldPlacement } from './input.ts'
import { fresh, reachability } from './probes.ts'

/** What all clusters together say of one virtual address. */
export type VipFindings = {
  provisioned: Finding
  advertised: Finding
  reachable: Finding
  /** Whether some cluster carries connections to it; `open`: not yet, but it is on its way. */
  carried: Finding & { open: boolean }
  /** No cluster serves its family: it counts for nothing. */
  notServed: boolean
}

/** One cluster's words on one address; absent where it has no say in that. */
type Heard = { provisioned?: Word; advertised?: Word; carried?: Word; notServed?: true }

/**
 * Folds one address. `idle` says why no cluster should serve it, where none should; `alive` whether
 * any enabled backend answers.
 */
export const foldVip = (
  address: string,
  input: FoldInput,
  idle: Finding,
  alive: Finding,
): VipFindings => {
  const placements = input.placements ?? []
  const heard = placements.map((placement) => hear(address, placement, input))
  const notServed = heard.some((each) => each.notServed) && !heard.some((each) => each.carried)
  const absent: Word = notServed
    ? closed('FALSE', 'AddressFamilyNotServed')
    : input.placements === null
      ? onItsWay
      : { ...idle, open: idle.reason === 'Progressing' }
  const total = placements.length
  const provisioned = heard.flatMap((each) => each.provisioned ?? [])
  const carried = heard.flatMap((each) => each.carried ?? [])
  const advertised = announced(heard.flatMap((each) => each.advertised ?? []))
  const carriedWord = best(carried) ?? absent
  const carriedFinding = inWords(carriedWord, carried, total)
  const advertisedFinding = inWords(advertised.word ?? absent, advertised.words, total)
  return {
    provisioned: inWords(firstAgainst(provisioned) ?? provisioned[0] ?? absent, provisioned, total),
    advertised: advertisedFinding,
    reachable: reachability(
      derivedReachability(advertisedFinding, carriedFinding, alive),
      fresh(input.probes ?? [], input.now).filter((probe) => probe.address === address),
    ),
    carried: { ...carriedFinding, open: carriedWord.open },
    notServed,
  }
}

const closed = (status: Finding['status'], reason: keyof typeof REASONS): Word => ({
  ...found(status, reason, REASONS[reason]),
  open: false,
})

const nothingYet: Heard = { provisioned: onItsWay, advertised: onItsWay, carried: onItsWay }

const hear = (address: string, placement: FoldPlacement, input: FoldInput): Heard => {
  const { placed, report, unreachableSince } = placement
  const vip = report?.vips[address]
  const current = isCurrent(placement)
  if (placed && vip?.provisioned.reason === 'AddressFamilyNotServed') return { notServed: true }
  if (unreachableSince !== null) {
    const word = unreachable(unreachableSince, placement)
    return placed ? { provisioned: word, advertised: word, carried: word } : { provisioned: word }
  }
  if (!placed) {
    if (!current) return { provisioned: onItsWay }
    return vip && !report?.inEffect
      ? { provisioned: wordOf(vip.provisioned, placement, input) }
      : {}
  }
  if (!report || !vip) return nothingYet
  const provisioned = current ? wordOf(vip.provisioned, placement, input) : onItsWay
  if (vip.wanted)
    return {
      provisioned,
      advertised: announcing(vip, placement, input),
      carried: carrying(report, vip, placement, input),
    }
  if (!current) return nothingYet
  return ['Withdrawing', 'TeardownStuck'].includes(vip.provisioned.reason) ? { provisioned } : {}
}

/** Where some of a cluster's gateways announce it, it is announced. */
const announcing = (vip: VipReport, placement: FoldPlacement, input: FoldInput): Word =>
  vip.advertised.reason === 'PartlyAdvertised'
    ? closed('TRUE', 'PartlyAdvertised')
    : wordOf(vip.advertised, placement, input)

/**
 * Whether a cluster carries connections now: announced, accepted, and a backend behind it. A
 * cluster where nothing was ever in effect as a whole is not relied upon yet.
 */
const carrying = (
  report: PlacementReport,
  vip: VipReport,
  placement: FoldPlacement,
  input: FoldInput,
): Word => {
  const word = (finding: Finding) => wordOf(finding, placement, input)
  const against = firstAgainst([word(vip.accepted), announcing(vip, placement, input)])
  if (against) {
    const cluster = word(report.cluster)
    return cluster.status === 'FALSE' && against.status === 'FALSE' ? cluster : against
  }
  if (Object.values(report.backends).some(({ serving }) => serving))
    return placement.settledGeneration > 0 ? closed('TRUE', 'Serving') : onItsWay
  return firstAgainst([word(vip.provisioned)]) ?? closed('FALSE', 'NotServing')
}

/** One cluster that does is enough; else what nobody knows, then what is on its way. */
const best = (words: Word[]): Word | undefined =>
  words.find(({ status }) => status === 'TRUE') ??
  words.find(({ status }) => status === 'UNKNOWN') ??
  words.find(({ open }) => open) ??
  words[0]

const announced = (words: Word[]): { word: Word | undefined; words: Word[] } => {
  const everywhere = words.every(
    ({ status, reason }) => status === 'TRUE' && reason === 'Advertised',
  )
  const word = best(words)
  if (word?.status !== 'TRUE' || everywhere) return { word, words }
  return { word: closed('TRUE', 'PartlyAdvertised'), words: [] }
}

const derivedReachability = (advertised: Finding, carried: Finding, alive: Finding): Finding => {
  if (advertised.status !== 'TRUE') return advertised
  if (carried.status !== 'TRUE') return carried
  return alive.status === 'TRUE' ? found('TRUE', 'NotProbed', REASONS.NotProbed) : alive
}
