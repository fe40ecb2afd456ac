import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { clientAddressBehind } from '../../../src/server/limits/clientAddress.ts'

/** A request as it comes from an address, with what it says of others. */
function request(remoteAddress: string, forwarded?: string): IncomingMessage {
  const socket = new Socket()
  Object.defineProperty(socket, 'remoteAddress', { value: remoteAddress })
  const message = new IncomingMessage(socket)
  if (forwarded !== undefined) message.headers['x-forwarded-for'] = forwarded
  return message
}

test.each([
  // Nobody is trusted.
  [[], '192.0.2.1', '198.51.100.7', '192.0.2.1'],
  // Whoever isn't a trusted proxy may say what they like.
  [['10.0.0.0/8'], '192.0.2.1', '198.51.100.7', '192.0.2.1'],
  [['10.0.0.0/8'], '10.1.2.3', '198.51.100.7', '198.51.100.7'],
  [['10.0.0.0/8'], '::ffff:10.1.2.3', '198.51.100.7', '198.51.100.7'],
  // What the client wrote itself lies before what the proxy saw.
  [['10.0.0.0/8'], '10.1.2.3', '127.0.0.1, 198.51.100.7', '198.51.100.7'],
  // Two proxies, both trusted.
  [
    ['10.0.0.0/8', '2001:db8::1'],
    '2001:db8::1',
    '127.0.0.1, 198.51.100.7, 10.9.9.9',
    '198.51.100.7',
  ],
  [['2001:db8::/32'], '2001:db8::5', '2001:db8:1::9, 2001:db8::6', '2001:db8:1::9'],
  [['10.0.0.0/8'], '10.1.2.3', undefined, '10.1.2.3'],
  [['10.0.0.0/8'], '10.1.2.3', 'unknown', '10.1.2.3'],
  [['10.0.0.0/8'], '10.1.2.3', '198.51.100.7, nonsense', '10.1.2.3'],
])(
  'with %j trusted, %s that passes on %j is the client %s',
  (trusted, remote, forwarded, expected) => {
    expect(clientAddressBehind(trusted)(request(remote, forwarded))).toBe(expected)
  },
)
