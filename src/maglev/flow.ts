import ipaddr from 'ipaddr.js'
import { fnv1a32 } from './hash.ts'
import { TABLE_SIZE } from './table.ts'

/** What of a connection chooses its slot, in the order in which it is hashed. */
export type Hashed = 'CLIENT_ADDRESS' | 'CLIENT_PORT' | 'PROTOCOL'

/** As IANA numbers them. */
export type ProtocolNumber = 6 | 17

/** A client as the data plane sees it. */
export type Client = {
  /** Canonical. */
  address: string
  /** undefined: not known; then it can't be hashed. */
  port: number | undefined
  protocol: ProtocolNumber
}

export type Affinity = 'NONE' | 'CLIENT_IP' | 'CLIENT_IP_AND_PROTOCOL'

/**
 * What is hashed for an affinity. The protocol as one byte behind the address is our reading: the
 * data plane has no field for affinity yet.
 */
export const HASHED: Record<Affinity, readonly Hashed[]> = {
  NONE: ['CLIENT_ADDRESS', 'CLIENT_PORT'],
  CLIENT_IP: ['CLIENT_ADDRESS'],
  CLIENT_IP_AND_PROTOCOL: ['CLIENT_ADDRESS', 'PROTOCOL'],
}

/** The slot of a client's connections; undefined where what is hashed isn't known. */
export function slotOf(client: Client, affinity: Affinity): number | undefined {
  const bytes: number[] = []
  for (const part of HASHED[affinity]) {
    const more = bytesOf(part, client)
    if (more === undefined) return undefined
    bytes.push(...more)
  }
  return fnv1a32(Uint8Array.from(bytes)) % TABLE_SIZE
}

function bytesOf(part: Hashed, { address, port, protocol }: Client): number[] | undefined {
  switch (part) {
    case 'CLIENT_ADDRESS': {
      const parsed = ipaddr.parse(address)
      // The data plane has room for 16 bytes: IPv4 goes in as IPv4-mapped IPv6.
      return parsed instanceof ipaddr.IPv4
        ? parsed.toIPv4MappedAddress().toByteArray()
        : parsed.toByteArray()
    }
    case 'CLIENT_PORT':
      return port === undefined ? undefined : [port >> 8, port & 0xff]
    case 'PROTOCOL':
      return [protocol]
  }
}
