import fc from 'fast-check'
import { backendKey, type Table, tableOf } from '../../src/maglev/table.ts'

/** The sets of which the data plane's own tables are known. */
export const TWO = ['fd00:10:1::1:443', 'fd00:10:1::1:8443']
export const THREE = ['100', '101', '102'].map((host) => `fd20:60:ff03::${host}:0:8080`)
export const THIRTEEN = [
  ...['100:2', '103:3', '106:2', '109:2', '10c:2'].map((host) => `fd20:60:ff01::${host}:30080`),
  ...['101:3', '104:3', '107:1', '10a:1'].map((host) => `fd20:60:ff02::${host}:30080`),
  ...['102:2', '105:1', '108:1', '10b:0'].map((host) => `fd20:60:ff03::${host}:30080`),
]

/** The table of a set that can have one. */
export function made(keys: Iterable<string>): Table {
  const table = tableOf(keys)
  if ('refused' in table) throw new Error(table.message)
  return table
}

const host = fc.integer({ min: 1, max: 0xffff }).map((part) => part.toString(16))

/** Sets of different backends on one port, as one load balancer has them. */
export const keySets = ({ least = 1, most = 64 } = {}): fc.Arbitrary<string[]> =>
  fc
    .tuple(
      fc.uniqueArray(fc.tuple(host, host), {
        minLength: least,
        maxLength: most,
        selector: (parts) => parts.join(),
      }),
      fc.integer({ min: 1, max: 65_535 }),
    )
    .map(([hosts, port]) => hosts.map(([net, one]) => backendKey(`fd20:${net}::${one}`, port)))
