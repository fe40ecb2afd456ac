import { compareAddresses } from './addresses.ts'
import { bindingOf, ruleOf } from './bodies.ts'
import { found } from './findings.ts'
import { ruleName } from './names.ts'
import type { NetworkRule, ServiceVIPBinding } from './objects.ts'
import { type ListedBackend, placeBackends } from './placing.ts'
import type { Finding } from './report.ts'
import type { Capabilities, Dialect, SessionAffinity, Wanted, WantedVip } from './wanted.ts'

/** What should be in one cluster for one load balancer: bodies of server-side applies, and why not more. */
export type Desired = {
  loadBalancer: string
  instance: string
  dialect: Dialect | undefined
  rulesGeneration: number
  /** Nothing may be written or removed, and why; null: go ahead. */
  blocked: Finding | null
  rules: NetworkRule[]
  /** Only in the *backends* dialect; in the other one the data plane writes them. */
  bindings: ServiceVIPBinding[]
  /** Only in the *selector* dialect: what must carry `servingLabel`; nothing else may. */
  labels: AttachmentLabel[]
  /** By VIP, as the store spells it. */
  vips: Record<string, DesiredVip>
  /** By backend id; also those that don't live here (AddressUnknown). */
  backends: Record<string, DesiredBackend>
  affinity: Finding
  /** Bindings of other load balancers that have to be gone before all can be had. */
  awaited: string[]
}

export type AttachmentLabel = { namespace: string; name: string; uid: string }

export type DesiredVip = {
  /** The rule's name, wanted or not: by it one looks for what may be left of it. */
  rule: string
  /** A rule for it is among `rules`. */
  wanted: boolean
  /** TRUE, or why there is no rule for it. */
  finding: Finding
}

export type DesiredBackend = {
  address: string
  /** It is in the rules (or its attachment carries the label). */
  listed: boolean
  /** Where it lives; undefined: not here. */
  node: string | undefined
  /** TRUE Resolved, or why it is kept out here. */
  placed: Finding
}

/** Computes what should be in a cluster. Equal wishes give deeply equal answers, in the same order. */
export const desired = (wanted: Wanted, capabilities: Capabilities): Desired => {
  const blocked = whyBlocked(wanted, capabilities)
  const backends = placeBackends(wanted, capabilities)
  const listed = backends.filter((backend) => backend.listed)
  const vips = wanted.vips.map((vip) => ({
    vip,
    rule: ruleName(wanted.loadBalancer, vip.address),
    finding: blocked ?? vipFinding(vip, wanted, capabilities, listed.length),
  }))
  const served = vips.filter(({ finding }) => finding.status === 'TRUE')
  const byAddress = listed.toSorted((a, b) =>
    compareAddresses(a.backend.address, b.backend.address),
  )
  return {
    loadBalancer: wanted.loadBalancer,
    instance: wanted.instance,
    dialect: capabilities.dialect,
    rulesGeneration: wanted.storeBehind ? 0 : wanted.rulesGeneration,
    blocked,
    rules: served.map(({ vip, rule }) =>
      ruleOf(wanted, capabilities, rule, vip.address, byAddress, listed),
    ),
    bindings:
      capabilities.dialect === 'backends'
        ? served.flatMap(({ vip, rule }) =>
            byAddress.map((backend) => bindingOf(wanted, rule, vip.address, backend)),
          )
        : [],
    labels:
      capabilities.dialect === 'selector' && served.length > 0 ? attachmentsOf(byAddress) : [],
    vips: Object.fromEntries(
      vips.map(({ vip, rule, finding }) => [
        vip.address,
        { rule, wanted: finding.status === 'TRUE', finding },
      ]),
    ),
    backends: Object.fromEntries(
      backends.map(({ backend, listed, placed }) => [
        backend.id,
        {
          address: backend.address,
          listed: listed && served.length > 0,
          node: backend.endpoint?.node,
          placed,
        },
      ]),
    ),
    affinity: affinityFinding(wanted.sessionAffinity, capabilities),
    awaited: backends.flatMap((backend) =>
      !backend.listed && backend.awaits !== undefined ? [backend.awaits] : [],
    ),
  }
}

const whyBlocked = (wanted: Wanted, capabilities: Capabilities): Finding | null => {
  if (wanted.placed && capabilities.dialect === undefined)
    return found('FALSE', 'SchemaMissing', 'The cluster has no NetworkRule of a known shape.')
  if (!wanted.placed && wanted.awaitsSuccessor)
    return found('FALSE', 'Withdrawing', 'It leaves once it is in effect where it goes.')
  return null
}

const vipFinding = (
  vip: WantedVip,
  wanted: Wanted,
  capabilities: Capabilities,
  listed: number,
): Finding => {
  if (!wanted.placed) return found('FALSE', 'Withdrawing', 'It is not wanted here any more.')
  if (vip.family === 'IPV4' && !capabilities.servesIPv4)
    return found('FALSE', 'AddressFamilyNotServed', `IPv4 is not served, so ${vip.address} isn't.`)
  if (listed === 0) return found('FALSE', 'NoBackends', 'No backend here can be sent connections.')
  if (vip.heldBy !== null)
    return found(
      'FALSE',
      'AddressHeldElsewhere',
      `${vip.address} is not yet let go of by the load balancer that had it before.`,
    )
  if (vip.noRoom)
    return found('FALSE', 'ClusterFull', `The gateways have no room for ${vip.address}.`)
  return found('TRUE', 'Progressing', `${vip.address} should be served here.`)
}

const affinityFinding = (affinity: SessionAffinity, capabilities: Capabilities): Finding => {
  if (affinity === 'NONE') return found('TRUE', 'Honoured', 'No affinity is asked for.')
  if (capabilities.dialect === undefined)
    return found('UNKNOWN', 'SchemaMissing', 'Whether affinity can be kept is not known.')
  if (!capabilities.sessionAffinity)
    return found('FALSE', 'AffinityNotSupported', 'Connections are spread without affinity.')
  return found('TRUE', 'Honoured', 'Connections are spread with the affinity asked for.')
}

/** Each attachment once, whatever the number of its addresses. */
const attachmentsOf = (listed: ListedBackend[]): AttachmentLabel[] => {
  const byName = new Map<string, AttachmentLabel>()
  for (const { endpoint } of listed)
    byName.set(`${endpoint.attachment.namespace}/${endpoint.attachment.name}`, endpoint.attachment)
  return [...byName.keys()].toSorted().flatMap((key) => byName.get(key) ?? [])
}
