import ipaddr from 'ipaddr.js'

/**
 * Addresses as the data plane spells them. What the store holds was parsed strictly before it got
 * here; what a cluster answers may be in any spelling, so both are compared by their bytes.
 */

/** The bytes of an address; undefined where the text is none. IPv4-mapped IPv6 is unmapped. */
const bytesOf = (address: string): readonly number[] | undefined =>
  ipaddr.isValid(address) ? ipaddr.process(address).toByteArray() : undefined

/** So many texts are remembered with their spelling; what clusters answer has no bound of its own. */
const REMEMBERED = 20_000
const spellings = new Map<string, string>()

/**
 * One spelling for each address: lower-case, RFC 5952. A text that is no address stays as it is.
 * Remembered, since every look at a load balancer asks some twenty times for the same few: parsing them
 * was a tenth of a worker's time (measured).
 */
export const canonical = (address: string): string => {
  const known = spellings.get(address)
  if (known !== undefined) return known
  if (spellings.size >= REMEMBERED) spellings.clear()
  const spelling = spell(address)
  spellings.set(address, spelling)
  return spelling
}

const spell = (address: string): string => {
  if (!ipaddr.isValid(address)) return address
  const parsed = ipaddr.process(address)
  return parsed instanceof ipaddr.IPv6 ? parsed.toRFC5952String() : parsed.toString()
}

/** Whether an address is IPv4. */
export const isIPv4 = (address: string): boolean => !address.includes(':')

/** The prefix that holds this address alone: /32 or /128. */
export const hostPrefix = (address: string): string =>
  `${canonical(address)}/${isIPv4(address) ? 32 : 128}`

/** A prefix in one spelling. */
export const canonicalPrefix = (prefix: string): string => {
  const slash = prefix.lastIndexOf('/')
  return slash < 0 ? canonical(prefix) : canonical(prefix.slice(0, slash)) + prefix.slice(slash)
}

/** Orders addresses by family, then by their bytes: the same order whatever the spelling. */
export const compareAddresses = (a: string, b: string): number => {
  const left = bytesOf(a) ?? []
  const right = bytesOf(b) ?? []
  if (left.length !== right.length) return left.length - right.length
  for (const [index, byte] of left.entries()) {
    const difference = byte - (right[index] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}
