import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { HASHED, slotOf } from '../../src/maglev/flow.ts'
import { fnv1a32 } from '../../src/maglev/hash.ts'
import { TABLE_SIZE } from '../../src/maglev/table.ts'

const ports = fc.integer({ min: 1, max: 65_535 })

describe('the slot of a flow', () => {
  // Made by the data plane's own code.
  test.each([
    ['2001:db8:ffff::1', 443, 969],
    ['2001:db8:ffff::1', 1024, 463],
    ['2001:db8:ffff::1', 4660, 906],
    ['2001:db8:ffff::1', 13330, 261],
    ['2001:db8:ffff::1', 32768, 636],
    ['2001:db8:ffff::1', 49152, 294],
    ['2001:db8:ffff::1', 65280, 351],
    ['2001:db8:ffff::1', 65535, 171],
    ['::1', 5000, 704],
    ['::', 5000, 678],
  ])('of %s port %i is %i', (address, port, slot) => {
    expect(slotOf({ address, port, protocol: 6 }, 'NONE')).toBe(slot)
  })

  test('of an IPv4 client is that of its IPv4-mapped address', () => {
    const mapped = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1]
    const bytes = Uint8Array.from([...mapped, 0x12, 0x34])
    expect(slotOf({ address: '192.0.2.1', port: 0x1234, protocol: 17 }, 'NONE')).toBe(
      fnv1a32(bytes) % TABLE_SIZE,
    )
  })

  test('rests on the port where there is no affinity, and on the protocol never', () => {
    const address = '2001:db8::7'
    const slots = Array.from({ length: 100 }, (_, at) =>
      slotOf({ address, port: 40_000 + at, protocol: 6 }, 'NONE'),
    )
    expect(new Set(slots).size).toBeGreaterThan(80)
    fc.assert(
      fc.property(ports, (port) => {
        expect(slotOf({ address, port, protocol: 17 }, 'NONE')).toBe(
          slotOf({ address, port, protocol: 6 }, 'NONE'),
        )
      }),
    )
  })

  test('by client address is the same for every port and protocol', () => {
    fc.assert(
      fc.property(fc.ipV6(), ports, fc.constantFrom(6, 17), (address, port, protocol) => {
        fc.pre(!address.includes('.'))
        expect(slotOf({ address, port, protocol }, 'CLIENT_IP')).toBe(
          slotOf({ address, port: undefined, protocol: 6 }, 'CLIENT_IP'),
        )
      }),
    )
  })

  test('by client address and protocol hashes the protocol as one byte', () => {
    const bytes = (protocol: number) =>
      Uint8Array.from([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, protocol])
    for (const protocol of [6, 17] as const) {
      const client = { address: '2001:db8::7', port: undefined, protocol }
      expect(slotOf(client, 'CLIENT_IP_AND_PROTOCOL')).toBe(fnv1a32(bytes(protocol)) % TABLE_SIZE)
    }
  })

  test('is not known where the port is hashed and not known', () => {
    expect(slotOf({ address: '::1', port: undefined, protocol: 6 }, 'NONE')).toBeUndefined()
    expect(HASHED.NONE).toEqual(['CLIENT_ADDRESS', 'CLIENT_PORT'])
  })
})
