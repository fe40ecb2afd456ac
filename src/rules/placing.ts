import { canonical, isIPv4 } from './addresses.ts'
import type { Reason } from './reasons.ts'
import type { Finding } from './report.ts'
import type { Capabilities, Endpoint, Wanted, WantedBackend } from './wanted.ts'

/** A backend that is in the rules. */
export type ListedBackend = { backend: WantedBackend; endpoint: Endpoint }

/** A backend, and whether the rules list it. */
export type PlacedBackend =
  | { backend: WantedBackend; endpoint: Endpoint; listed: true; placed: Finding }
  | {
      backend: WantedBackend
      endpoint: Endpoint | null
      listed: false
      placed: Finding
      /** The binding that has to go first. */
      awaits?: string
    }

/**
 * Decides which backends the rules of a cluster list, in the order of age that they come in.
 * An older backend that serves nothing (disabled, unhealthy) takes no place from a younger one.
 */
export const placeBackends = (wanted: Wanted, capabilities: Capabilities): PlacedBackend[] => {
  const takenNodes = new Set<string>()
  const spoilt = spoiltAttachments(wanted, capabilities)
  return wanted.backends.map((backend): PlacedBackend => {
    const { endpoint } = backend
    const out = (reason: Reason, message: string) => ({
      backend,
      endpoint,
      listed: false as const,
      placed: { status: 'FALSE' as const, reason, message },
    })
    if (endpoint === null) return out('AddressUnknown', `${backend.address} is not known here.`)
    const ineligible = whyIneligible(backend, capabilities)
    if (ineligible) return out(...ineligible)
    if (capabilities.dialect === 'selector' && spoilt.has(attachmentKey(endpoint)))
      return out(
        'AttachmentShared',
        `The interface of ${backend.address} also carries an address that should not serve now.`,
      )
    if (capabilities.dialect === 'backends') {
      if (backend.nodeTaken || takenNodes.has(endpoint.node))
        return out(
          'NodeConflict',
          `An older backend on the machine of ${backend.address} serves the same protocol and port.`,
        )
      if (backend.nodeHeldBy !== undefined)
        return {
          ...out(
            'NodeConflict',
            `The machine of ${backend.address} has not yet let go of another backend for the same protocol and port.`,
          ),
          awaits: backend.nodeHeldBy,
        }
      takenNodes.add(endpoint.node)
    }
    return {
      backend,
      endpoint,
      listed: true,
      placed: { status: 'TRUE', reason: 'Resolved', message: `${backend.address} is known.` },
    }
  })
}

const attachmentKey = ({ attachment }: Endpoint): string =>
  `${attachment.namespace}/${attachment.name}`

/** Why a backend that lives here isn't sent connections, whatever the others do. */
const whyIneligible = (
  backend: WantedBackend,
  capabilities: Capabilities,
): [Reason, string] | undefined => {
  const { address } = backend
  if (backend.adminState === 'DISABLED') return ['Disabled', `${address} is disabled.`]
  if (backend.adminState === 'STANDBY') return ['Standby', `${address} is on standby.`]
  // Selected attachments contribute their IPv6 addresses only.
  if (isIPv4(address) && (!capabilities.servesIPv4 || capabilities.dialect === 'selector'))
    return ['AddressFamilyNotServed', `IPv4 is not served, so ${address} is left out.`]
  if (backend.cordoned)
    return ['ClusterCordoned', `No new backends are taken where ${address} lives.`]
  if (backend.unhealthy) return ['Unhealthy', `The health check of ${address} fails.`]
  return undefined
}

/**
 * In the *selector* dialect an attachment serves with all its IPv6 addresses or not at all: those
 * that carry one which must not serve, because it is no backend here or one that is kept out.
 */
const spoiltAttachments = (wanted: Wanted, capabilities: Capabilities): Set<string> => {
  const serving = new Map<string, Set<string>>()
  const carried = new Map<string, Set<string>>()
  for (const backend of wanted.backends) {
    const { endpoint, address } = backend
    if (!endpoint || isIPv4(address)) continue
    const key = attachmentKey(endpoint)
    const addresses = carried.get(key) ?? new Set(endpoint.otherAddresses?.map(canonical))
    carried.set(key, addresses.add(canonical(address)))
    if (whyIneligible(backend, capabilities)) continue
    serving.set(key, (serving.get(key) ?? new Set()).add(canonical(address)))
  }
  return new Set(
    [...carried].flatMap(([key, addresses]) =>
      addresses.isSubsetOf(serving.get(key) ?? new Set()) ? [] : [key],
    ),
  )
}
