import { BlockList, isIPv4, isIPv6 } from 'node:net'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  addressOfCidr,
  compareAddresses,
  isHostAddress,
  parseAddress,
  parsePrefix,
  unmapAddress,
} from '../../src/ipam/address.ts'

/** Another implementation's canonical spelling of an IPv6 address: the URL parser's. */
function canonicalByUrl(text: string): string {
  return new URL(`http://[${text}]/`).hostname.slice(1, -1)
}

const octets = fc.array(fc.nat(255), { minLength: 4, maxLength: 4 })
const ipv4 = octets.map((bytes) => bytes.join('.'))
/** Addresses with runs of zeros, so that compression has something to choose from. */
const groups = fc.array(fc.oneof(fc.constant(0), fc.nat(0xffff)), { minLength: 8, maxLength: 8 })
const spelled = groups.chain((parts) =>
  fc.tuple(fc.boolean(), fc.boolean(), fc.nat(7), fc.nat(7)).map(([upper, padded, from, count]) => {
    const texts = parts.map((part) => part.toString(16).padStart(padded ? 4 : 1, '0'))
    const run = parts.slice(from, from + count + 1)
    const zeros = run.length > 0 && run.every((part) => part === 0)
    const text = zeros
      ? `${texts.slice(0, from).join(':')}::${texts.slice(from + run.length).join(':')}`
      : texts.join(':')
    return upper ? text.toUpperCase() : text
  }),
)
const isMapped = (text: string) => /^::ffff:[^:]+:[^:]+$/.test(canonicalByUrl(text))

describe('an address', () => {
  test('in any spelling of IPv6 comes out as the URL parser writes it', () => {
    fc.assert(
      fc.property(spelled, (text) => {
        fc.pre(!isMapped(text))
        expect(parseAddress(text)).toEqual({ address: canonicalByUrl(text), family: 'IPV6' })
      }),
      { numRuns: 1000 },
    )
  })

  test('in plain IPv4 comes out as it went in', () => {
    fc.assert(
      fc.property(ipv4, (text) => {
        expect(parseAddress(text)).toEqual({ address: text, family: 'IPV4' })
      }),
    )
  })

  test('is taken only where node takes it, and never thrown at', () => {
    const noise = fc.string({
      unit: fc.constantFrom(...'0123456789abcdefF:.:%/[] x'.split('')),
      maxLength: 24,
    })
    fc.assert(
      fc.property(fc.oneof(noise, spelled, ipv4, fc.string()), (text) => {
        const parsed = parseAddress(text)
        const known = isIPv4(text) || isIPv6(text)
        if (!('code' in parsed)) expect(known).toBe(true)
        // What node takes and we don't: dotted tails, zones and the mapped form.
        else if (known)
          expect(text.includes('.') || text.includes('%') || isMapped(text)).toBe(true)
      }),
      { numRuns: 2000 },
    )
  })

  test('suggested instead of a wrong one is taken, in that very spelling', () => {
    const parts = fc.array(fc.oneof(spelled, ipv4, fc.constantFrom(...' []%/:0.'.split(''))), {
      maxLength: 4,
    })
    fc.assert(
      fc.property(
        parts.map((texts) => texts.join('')),
        (text) => {
          const parsed = parseAddress(text)
          if (!('code' in parsed) || parsed.suggestion === null) return
          expect(parseAddress(parsed.suggestion)).toMatchObject({ address: parsed.suggestion })
        },
      ),
      { numRuns: 2000 },
    )
  })

  test.each([
    ['010.0.0.1', '10.0.0.1'],
    ['10.00.0.1', '10.0.0.1'],
    ['10.1', null],
    ['10', null],
    ['167772161', null],
    ['0x0a.0.0.1', null],
    ['0x0a000001', null],
    ['256.0.0.1', null],
    ['10.0.0.1.', null],
    ['10.0.0.1/32', '10.0.0.1'],
    ['10.0.0.1:80', '10.0.0.1'],
    [' 10.0.0.1', '10.0.0.1'],
    ['2001:db8::1\n', '2001:db8::1'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['[2001:DB8::1]:443', '2001:db8::1'],
    ['fe80::1%eth0', 'fe80::1'],
    ['::ffff:10.0.0.1', '10.0.0.1'],
    ['::ffff:a00:1', '10.0.0.1'],
    ['0:0:0:0:0:FFFF:10.0.0.1', '10.0.0.1'],
    ['[::ffff:10.0.0.1]', '10.0.0.1'],
    ['::10.0.0.1', '::a00:1'],
    ['64:ff9b::192.0.2.1', '64:ff9b::c000:201'],
    ['::ffff:010.0.0.1', null],
    ['1:2:3:4:5:6:7', null],
    ['1:2:3:4:5:6:7:8:9', null],
    ['1::2::3', null],
    ['12345::', null],
    ['', null],
    ['backend', null],
    ['1'.repeat(10_000), null],
  ])('written as %j is refused', (text, suggestion) => {
    expect(parseAddress(text)).toMatchObject({ code: 'INVALID_ADDRESS', suggestion })
  })

  test.each([
    ['2001:DB8:0:0:0:0:0:1', '2001:db8::1'],
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
    ['2001:0:0:1:0:0:0:1', '2001:0:0:1::1'],
    ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
    ['0:0:0:0:0:0:0:0', '::'],
    ['1:2:3:4:5:6:7::', '1:2:3:4:5:6:7:0'],
  ])('%s is written as %s', (text, address) => {
    expect(parseAddress(text)).toEqual({ address, family: 'IPV6' })
  })

  test('that a machine reports as IPv4-mapped is the plain one', () => {
    fc.assert(
      fc.property(ipv4, (text) => {
        const plain = { address: text, family: 'IPV4' }
        expect(unmapAddress(`::ffff:${text}`)).toEqual(plain)
        expect(unmapAddress(canonicalByUrl(`::ffff:${text}`))).toEqual(plain)
        expect(unmapAddress(text)).toEqual(plain)
      }),
    )
    expect(unmapAddress('fd00::1')).toEqual({ address: 'fd00::1', family: 'IPV6' })
    expect(unmapAddress('::ffff:010.0.0.1')).toMatchObject({ code: 'INVALID_ADDRESS' })
    expect(unmapAddress('nothing')).toMatchObject({ code: 'INVALID_ADDRESS' })
  })

  test.each([
    ['fd00::1/96', 'fd00::1'],
    ['FD00:0::1/128', 'fd00::1'],
    ['10.1.2.3/24', '10.1.2.3'],
    ['::ffff:10.0.0.1/128', '10.0.0.1'],
  ])('of the interface %s is %s', (cidr, address) => {
    expect(addressOfCidr(cidr)).toMatchObject({ address })
  })

  test.each(['fd00::1', 'fd00::1/129', '10.0.0.1/33', '10.0.0.1/08', '10.1/8', 'x/1', '/1'])(
    'is not read from %s',
    (cidr) => {
      expect(addressOfCidr(cidr)).toHaveProperty('code')
    },
  )

  test('is one that a host can have unless it means none or many', () => {
    for (const address of ['::', '0.0.0.0', 'ff02::1', '224.0.0.1', '255.255.255.255']) {
      expect(isHostAddress(address)).toBe(false)
    }
    for (const address of ['fd00::1', '10.0.0.1', '2001:db8::1']) {
      expect(isHostAddress(address)).toBe(true)
    }
  })

  test('sorts by its bytes, IPv4 first', () => {
    const sorted = ['9.0.0.1', '10.0.0.1', '::1', '2001:db8::9', '2001:db8::10', 'fd00::1']
    fc.assert(
      fc.property(fc.shuffledSubarray(sorted, { minLength: sorted.length }), (shuffled) => {
        expect(shuffled.sort(compareAddresses)).toEqual(sorted)
      }),
    )
  })
})

describe('a prefix', () => {
  test('is taken as it is without host bits, and suggested without them otherwise', () => {
    const cases = fc.oneof(
      fc.tuple(ipv4, fc.nat(32)),
      fc.tuple(
        spelled.filter((text) => !isMapped(text)),
        fc.nat(128),
      ),
    )
    fc.assert(
      fc.property(cases, ([address, length]) => {
        const parsed = parsePrefix(`${address}/${length}`)
        const prefix = 'code' in parsed ? parsed.suggestion : parsed.prefix
        const [network = '', bits] = String(prefix).split('/')
        expect(bits).toBe(String(length))
        const family = address.includes(':') ? 'ipv6' : 'ipv4'
        const block = new BlockList()
        block.addSubnet(network, length, family)
        expect(block.check(address, family)).toBe(true)
        const again = parsePrefix(String(prefix))
        expect(again).toMatchObject({ prefix, length })
      }),
      { numRuns: 1000 },
    )
  })

  test.each([
    ['2001:db8:0:1::/64', '2001:db8:0:1::/64'],
    ['2001:DB8::/32', '2001:db8::/32'],
    ['10.0.0.0/8', '10.0.0.0/8'],
    ['0.0.0.0/0', '0.0.0.0/0'],
    ['::/0', '::/0'],
  ])('%s is written as %s', (text, prefix) => {
    expect(parsePrefix(text)).toMatchObject({ prefix })
  })

  test.each([
    ['10.0.0.1/8', '10.0.0.0/8'],
    ['2001:db8::1/64', '2001:db8::/64'],
    ['010.0.0.0/8', '10.0.0.0/8'],
    ['10/8', null],
    ['10.0.0.0/33', null],
    ['10.0.0.0/08', null],
    ['10.0.0.0', null],
    ['2001:db8::/129', null],
    [' 10.0.0.0/8', '10.0.0.0/8'],
    ['', null],
  ])('written as %j is refused', (text, suggestion) => {
    expect(parsePrefix(text)).toMatchObject({ code: 'INVALID_PREFIX', suggestion })
  })
})
