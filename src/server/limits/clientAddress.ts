import type { IncomingMessage } from 'node:http'
import { BlockList, isIP } from 'node:net'

/** Tells the address of the client, which a trusted proxy passes on in `x-forwarded-for`. */
export type ClientAddress = (request: IncomingMessage) => string | undefined

/** `trusted`: addresses and prefixes of proxies, as `TRUSTED_PROXY` lists them. */
export function clientAddressBehind(trusted: readonly string[]): ClientAddress {
  const proxies = new BlockList()
  for (const one of trusted) {
    const [address = '', length] = one.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    if (length === undefined) proxies.addAddress(address, family)
    else proxies.addSubnet(address, Number(length), family)
  }
  const isTrusted = (address: string) =>
    proxies.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
  return ({ socket, headers }) => {
    let address = plain(socket.remoteAddress ?? '')
    if (trusted.length === 0 || isIP(address) === 0 || !isTrusted(address)) {
      return socket.remoteAddress
    }
    // Each proxy adds whom it saw at the end; what lies before an untrusted one, anybody may have written.
    const passed = String(headers['x-forwarded-for'] ?? '').split(',')
    for (const one of passed.reverse()) {
      const before = plain(one.trim())
      if (isIP(before) === 0) break
      address = before
      if (!isTrusted(address)) break
    }
    return address
  }
}

/** Sockets that take both families show IPv4 as IPv6. */
function plain(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '')
}
