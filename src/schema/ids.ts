/**
 * Global ids: `<type>:<uuid>` in base64url. What isn't one names nothing: an id that was garbled, or
 * is another type's, is answered exactly like one that doesn't exist.
 */

export type NodeType =
  | 'LoadBalancer'
  | 'Backend'
  | 'IPv4Reservation'
  | 'Vpc'
  | 'Region'
  | 'ChangeEvent'
  | 'Cluster'
  | 'AddressPool'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
/** Longer than any id of ours. */
const LONGEST = 200

/** A UUID that is never given to anything. */
export const NOTHING = '00000000-0000-0000-0000-000000000000'

export type GivenId =
  | { type: Exclude<NodeType, 'Backend'>; uuid: string }
  /** A backend is read with its load balancer, so its id names both. */
  | { type: 'Backend'; uuid: string; loadBalancer: string }

export function globalId(type: Exclude<NodeType, 'Backend'>, uuid: string): string {
  return encode(`${type}:${uuid}`)
}

export function backendId(loadBalancer: string, uuid: string): string {
  return encode(`Backend:${loadBalancer}:${uuid}`)
}

/** What a global id names; null for what isn't one. */
export function decodeId(id: string): GivenId | null {
  if (id.length > LONGEST) return null
  const text = Buffer.from(id, 'base64url').toString('latin1')
  const [type, first = '', second, ...more] = text.split(':')
  if (!isUuid(first) || more.length > 0 || encode(text) !== id) return null
  if (type === 'Backend') {
    return second !== undefined && isUuid(second)
      ? { type, uuid: second, loadBalancer: first }
      : null
  }
  return isNodeType(type) && second === undefined ? { type, uuid: first } : null
}

/** The UUID in an id of the given type; null for any other text. */
export function uuidOf(type: NodeType, id: string): string | null {
  const decoded = decodeId(id)
  return decoded?.type === type ? decoded.uuid : null
}

export function isUuid(text: string): boolean {
  return UUID.test(text)
}

function isNodeType(type: string | undefined): type is Exclude<NodeType, 'Backend'> {
  switch (type) {
    case 'LoadBalancer':
    case 'IPv4Reservation':
    case 'Vpc':
    case 'Region':
    case 'ChangeEvent':
    case 'Cluster':
    case 'AddressPool':
      return true
    default:
      return false
  }
}

function encode(text: string): string {
  return Buffer.from(text, 'latin1').toString('base64url')
}
