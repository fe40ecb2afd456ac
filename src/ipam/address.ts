/**
 * The one strict reader of addresses and prefixes. ipaddr.js alone takes `010.0.0.1` (as 8.0.0.1),
 * `10.1`, `167772161`, zone ids and host bits; what comes out of here is one address in one
 * spelling: dotted decimal, or RFC 5952.
 */
import ipaddr from 'ipaddr.js'

/** The same words as everywhere; the rooms of one floor share no types. */
export type AddressFamily = 'IPV4' | 'IPV6'

export type Address = { address: string; family: AddressFamily }
export type Prefix = { prefix: string; family: AddressFamily; length: number }

/** Why a text is no address; `suggestion` is one that would be taken, where it is clear which. */
export type AddressProblem = {
  code: 'INVALID_ADDRESS' | 'INVALID_PREFIX'
  message: string
  suggestion: string | null
}

/** Longer than any address with a zone, brackets and spaces around it; nobody reads on behind it. */
const LONGEST = 100

const DOTTED = /^\d+\.\d+\.\d+\.\d+$/
const PLAIN_IPV4 = /^(?:(?:0|[1-9]\d{0,2})\.){3}(?:0|[1-9]\d{0,2})$/
const IPV6_CHARACTERS = /^[0-9a-fA-F:]+$/
/** 96 bits of `::ffff:0:0/96`, as ipaddr.js gives its parts. */
const MAPPED = [0, 0, 0, 0, 0, 0xffff] as const

/** Reads an address as a person or a client writes it. */
export function parseAddress(text: string): Address | AddressProblem {
  return plainIPv4(text) ?? plainIPv6(text) ?? problem(text)
}

/** The same for addresses that machines report: IPv4-mapped IPv6 is the IPv4 address it carries. */
export function unmapAddress(text: string): Address | AddressProblem {
  const parsed = parseAddress(text)
  if (!('code' in parsed)) return parsed
  const address = mapped(text)
  return address === undefined ? parsed : { address, family: 'IPV4' }
}

/** The address of an interface in CIDR form (`fd00::1/96`); host bits are its point. */
export function addressOfCidr(text: string): Address | AddressProblem {
  const cut = cutLength(text)
  if (cut === undefined) return notAPrefix(text)
  const parsed = unmapAddress(cut.address)
  if ('code' in parsed) return parsed
  // The length may still be counted in the 128 bits of the mapped form.
  const bits = cut.address.includes(':') ? 128 : 32
  return cut.length > bits ? notAPrefix(text) : parsed
}

/** Reads a prefix: canonical address, length, no host bits. */
export function parsePrefix(text: string): Prefix | AddressProblem {
  const cut = cutLength(text)
  if (cut === undefined) return notAPrefix(text)
  const parsed = parseAddress(cut.address)
  if ('code' in parsed) {
    const suggestion = parsed.suggestion && `${parsed.suggestion}/${cut.length}`
    const usable = suggestion !== null && !('code' in parsePrefix(suggestion))
    return { ...parsed, code: 'INVALID_PREFIX', suggestion: usable ? suggestion : null }
  }
  const { address, family } = parsed
  if (cut.length > (family === 'IPV4' ? 32 : 128)) return notAPrefix(text)
  const network = networkOf(address, cut.length)
  if (network !== address) {
    return {
      code: 'INVALID_PREFIX',
      message: `"${text}" has bits set behind its first ${cut.length}.`,
      suggestion: `${network}/${cut.length}`,
    }
  }
  return { prefix: `${address}/${cut.length}`, family, length: cut.length }
}

/** Orders canonical addresses by their bytes, IPv4 before IPv6. */
export function compareAddresses(a: string, b: string): number {
  const left = ipaddr.parse(a).toByteArray()
  const right = ipaddr.parse(b).toByteArray()
  return left.length - right.length || Buffer.compare(Buffer.from(left), Buffer.from(right))
}

/** Whether one host can have it: not `::`, `0.0.0.0`, multicast or broadcast, which no rule may carry. */
export function isHostAddress(address: string): boolean {
  return !['unspecified', 'multicast', 'broadcast'].includes(ipaddr.parse(address).range())
}

function plainIPv4(text: string): Address | undefined {
  if (!PLAIN_IPV4.test(text) || text.split('.').some((part) => Number(part) > 255)) return undefined
  return { address: text, family: 'IPV4' }
}

function plainIPv6(text: string): Address | undefined {
  const parsed = IPV6_CHARACTERS.test(text) ? parseIPv6(text) : undefined
  if (parsed === undefined || isMapped(parsed)) return undefined
  return { address: parsed.toRFC5952String(), family: 'IPV6' }
}

function parseIPv6(text: string): ipaddr.IPv6 | undefined {
  const hexadecimal = withoutDots(text)
  if (text.length > LONGEST || !IPV6_CHARACTERS.test(hexadecimal)) return undefined
  return ipaddr.IPv6.isValid(hexadecimal) ? ipaddr.IPv6.parse(hexadecimal) : undefined
}

/** A dotted tail in hexadecimal, which ipaddr.js would take for octal, or `::10.0.0.1` for mapped. */
function withoutDots(text: string): string {
  const cut = text.lastIndexOf(':') + 1
  const tail = text.slice(cut)
  if (cut === 0 || plainIPv4(tail) === undefined) return text
  const [a = 0, b = 0, c = 0, d = 0] = tail.split('.').map(Number)
  return `${text.slice(0, cut)}${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`
}

function isMapped(address: ipaddr.IPv6): boolean {
  return MAPPED.every((part, index) => address.parts[index] === part)
}

/** The IPv4 address in an IPv4-mapped one, in either of its spellings. */
function mapped(text: string): string | undefined {
  const parsed = parseIPv6(text)
  return parsed !== undefined && isMapped(parsed) ? parsed.toIPv4Address().toString() : undefined
}

function problem(text: string): AddressProblem {
  if (text.length > LONGEST) return refuse('That is too long to be an address.', null)
  if (text !== text.trim()) {
    return refuse('An address has no spaces around it.', acceptable(text.trim()))
  }
  const plain = mapped(text)
  if (plain !== undefined) {
    return refuse(`"${text}" is an IPv4 address written as IPv6; write it plainly.`, plain)
  }
  const bracketed = /^\[([^[\]]*)\](?::\d+)?$/.exec(text)
  if (bracketed !== null) {
    return refuse('An address is written without brackets and port.', acceptable(bracketed[1]))
  }
  if (text.includes('%')) {
    return refuse('An address has no zone id.', acceptable(text.slice(0, text.indexOf('%'))))
  }
  if (text.includes('/')) {
    const host = acceptable(text.slice(0, text.indexOf('/')))
    return refuse(`"${text}" is a prefix, not one address.`, host)
  }
  if (DOTTED.test(text)) return dottedProblem(text)
  if (/^\d+\.\d+\.\d+\.\d+:\d+$/.test(text)) {
    const host = acceptable(text.slice(0, text.indexOf(':')))
    return refuse('An address is written without a port.', host)
  }
  if (/^(?:0[xX][0-9a-fA-F]+|\d+)(?:\.(?:0[xX][0-9a-fA-F]+|\d+)){0,3}$/.test(text)) {
    return refuse('An IPv4 address is four decimal numbers with dots between them.', null)
  }
  if (text.includes(':') && text.includes('.')) {
    return refuse(
      'An IPv6 address is written in hexadecimal groups only.',
      parseIPv6(text)?.toRFC5952String() ?? null,
    )
  }
  return refuse(`"${text}" is not an IPv4 or IPv6 address.`, null)
}

function dottedProblem(text: string): AddressProblem {
  const decimal = text
    .split('.')
    .map((part) => part.replace(/^0+(?=\d)/, ''))
    .join('.')
  if (decimal !== text) {
    return refuse(
      'The numbers of an IPv4 address have no leading zeros (some would read them as octal).',
      plainIPv4(decimal)?.address ?? null,
    )
  }
  return refuse('The numbers of an IPv4 address are at most 255.', null)
}

/** What would be taken instead: the text itself in canonical form, or its own suggestion. */
function acceptable(text: string | undefined): string | null {
  if (text === undefined || text === '') return null
  const parsed = parseAddress(text)
  return 'code' in parsed ? parsed.suggestion : parsed.address
}

function refuse(message: string, suggestion: string | null): AddressProblem {
  return { code: 'INVALID_ADDRESS', message, suggestion }
}

function notAPrefix(text: string): AddressProblem {
  const trimmed = text.slice(0, LONGEST).trim()
  const parsed = trimmed === text ? undefined : parsePrefix(trimmed)
  return {
    code: 'INVALID_PREFIX',
    message: `"${text.slice(0, LONGEST)}" is not an address, a slash and a number of bits.`,
    suggestion: parsed === undefined ? null : 'code' in parsed ? parsed.suggestion : parsed.prefix,
  }
}

function cutLength(text: string): { address: string; length: number } | undefined {
  const match = /^([^/]+)\/(0|[1-9]\d{0,2})$/.exec(text)
  if (match?.[1] === undefined || match[2] === undefined) return undefined
  return { address: match[1], length: Number(match[2]) }
}

function networkOf(address: string, length: number): string {
  const bytes = ipaddr
    .parse(address)
    .toByteArray()
    .map((byte, index) => byte & (0xff00 >> Math.min(8, Math.max(0, length - index * 8))) & 0xff)
  const network = ipaddr.fromByteArray(bytes)
  return network instanceof ipaddr.IPv6 ? network.toRFC5952String() : network.toString()
}
