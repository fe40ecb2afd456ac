import { parseAddress } from '../ipam/address.ts'

const LONGEST = 253
const LABEL = /^(?!-)[A-Za-z0-9-]{1,63}(?<!-)$/
/** Where the host ends and a port may begin: an address of IPv6 stands in brackets. */
const PARTS = /^(?:\[(?<six>[^[\]]*)\]|(?<plain>[^:[\]]*))(?::(?<port>.*))?$/s

/**
 * Whether a text is what a Host header holds (RFC 9110, 7.2): a name, an IPv4 address, or an IPv6
 * address in brackets, and a port perhaps.
 */
export function isHostHeader(text: string): boolean {
  const { six, plain, port } = PARTS.exec(text)?.groups ?? {}
  if (port !== undefined && !isPort(port)) return false
  if (six !== undefined) return isAddress(six, 'IPV6')
  return plain !== undefined && (isAddress(plain, 'IPV4') || isName(plain))
}

/** What is meant, where that is clear: an IPv6 address without brackets, a name with the root's dot. */
export function hostHeaderMeant(text: string): string | null {
  const meant = [`[${text}]`, text.replace(/\.(?=$|:\d+$)/, '')].find(isHostHeader)
  return meant ?? null
}

const isPort = (text: string): boolean => /^[1-9]\d{0,4}$/.test(text) && Number(text) <= 65_535

function isAddress(text: string, family: 'IPV4' | 'IPV6'): boolean {
  const parsed = parseAddress(text)
  return 'family' in parsed && parsed.family === family
}

/** By digits alone a last label says that an address was meant (RFC 3986, 3.2.2, and what URLs are read by). */
function isName(text: string): boolean {
  const labels = text.split('.')
  const last = labels.at(-1) ?? ''
  return (
    text.length <= LONGEST &&
    labels.every((label) => LABEL.test(label)) &&
    !/^(?:\d+|0[xX][\dA-Fa-f]*)$/.test(last)
  )
}
