import { compareAddresses } from '../../src/ipam/address.ts'
import {
  LOAD_BALANCER_LABEL,
  type NetworkRule,
  type SelectorRuleSpec,
  type VpcAttachment,
} from '../../src/rules/objects.ts'
import { type Place, placesOf } from './inventory.ts'
import { familiesOf } from './vips.ts'

/** What a rule of the *selector* dialect picks. */
export type Selection = {
  /** By address. */
  backends: Place[]
  /** Attachments that are picked and can't serve yet, or never will. */
  unresolved: string[]
  /** Backends that an older rule serves. */
  claimed: { place: Place; owner: string }[]
}

/** The rule that serves each (address, port, protocol) of one VPC; made by `ownersOf`. */
export type Owners = ReadonlyMap<string, { rule: string; sharers: string | undefined }>

export type SelectionOptions = { servesIPv4: boolean }

/** Why a spec can't be turned into anything; undefined: it can. */
export function selectorProblem(
  rule: NetworkRule,
  { servesIPv4 }: SelectionOptions,
): string | undefined {
  const spec = selectorSpec(rule)
  if (spec === undefined) return 'backendSelector is empty'
  const families = familiesOf(rule)
  if (families.IPV6.length > 1) return `rule has ${families.IPV6.length} IPv6 VIPs`
  if (servesIPv4 && families.IPV4.length > 1) return `rule has ${families.IPV4.length} IPv4 VIPs`
  return undefined
}

/** The spec where it is one of this dialect: a rule of the other comes back pruned. */
export function selectorSpec(rule: NetworkRule): SelectorRuleSpec | undefined {
  const { spec } = rule
  if (!('backendSelector' in spec)) return undefined
  const { matchLabels = {} } = spec.backendSelector
  return Object.keys(matchLabels).length === 0 ? undefined : spec
}

/**
 * Who serves each backend of one VPC: the oldest rule that picks it, by time of creation (whole
 * seconds) and then by name. A rule that is being deleted keeps its claims until it is gone.
 */
export function ownersOf(
  rules: readonly NetworkRule[],
  attachments: ReadonlyMap<string, VpcAttachment>,
  options: SelectionOptions,
): Owners {
  const owners = new Map<string, { rule: string; sharers: string | undefined }>()
  for (const rule of rules.toSorted(byAge)) {
    const { name, labels } = rule.metadata
    if (selectorProblem(rule, options) !== undefined) continue
    if (!options.servesIPv4 && familiesOf(rule).IPV6.length === 0) continue
    for (const place of candidates(rule, attachments).backends) {
      const claim = claimOf(rule, place)
      const sharers = labels?.[LOAD_BALANCER_LABEL]
      if (!owners.has(claim)) owners.set(claim, { rule: name, sharers })
    }
  }
  return owners
}

/** What the rule serves, given who owns what. */
export function select(
  rule: NetworkRule,
  attachments: ReadonlyMap<string, VpcAttachment>,
  owners: Owners,
  { servesIPv4 }: SelectionOptions,
): Selection {
  const { backends, unresolved } = candidates(rule, attachments)
  const selection: Selection = { backends: [], unresolved, claimed: [] }
  const own = rule.metadata.labels?.[LOAD_BALANCER_LABEL]
  for (const place of backends) {
    const owner = owners.get(claimOf(rule, place))
    const shared = servesIPv4 && own !== undefined && owner?.sharers === own
    if (owner === undefined || owner.rule === rule.metadata.name || shared) {
      selection.backends.push(place)
    } else {
      selection.claimed.push({ place, owner: owner.rule })
    }
  }
  return selection
}

function candidates(
  rule: NetworkRule,
  attachments: ReadonlyMap<string, VpcAttachment>,
): { backends: Place[]; unresolved: string[] } {
  const labels = Object.entries(selectorSpec(rule)?.backendSelector.matchLabels ?? {})
  const unresolved: string[] = []
  const found: Place[] = []
  for (const [key, attachment] of attachments) {
    const own = attachment.metadata.labels ?? {}
    if (labels.length === 0 || labels.some(([name, value]) => own[name] !== value)) continue
    // The *selector* dialect carries IPv6 backends only.
    const places = placesOf(key, attachment).filter(({ family }) => family === 'IPV6')
    if (attachment.status?.node === undefined) unresolved.push(`${key}: status.node not set`)
    else if (places.length === 0) unresolved.push(`${key}: no IPv6 address`)
    found.push(...places)
  }
  found.sort(
    (a, b) =>
      compareAddresses(a.address, b.address) ||
      (a.attachment < b.attachment ? -1 : a.attachment > b.attachment ? 1 : 0),
  )
  const backends = new Map<string, Place>()
  for (const place of found) {
    const first = backends.get(place.address)
    if (first === undefined) backends.set(place.address, place)
    else unresolved.push(`${place.attachment}: ${place.address} is claimed by ${first.attachment}`)
  }
  return { backends: [...backends.values()], unresolved: unresolved.sort() }
}

function claimOf(rule: NetworkRule, place: Place): string {
  return `${place.address} ${selectorSpec(rule)?.backendPort ?? 0} ${rule.spec.protocol}`
}

function byAge(a: NetworkRule, b: NetworkRule): number {
  const [left, right] = [a.metadata, b.metadata]
  const [born, other] = [left.creationTimestamp ?? '', right.creationTimestamp ?? '']
  if (born !== other) return born < other ? -1 : 1
  return left.name < right.name ? -1 : 1
}
