import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Prefix, parsePrefix } from '../../src/ipam/address.ts'
import { planPool } from '../../src/ipam/pool.ts'

function prefix(text: string): Prefix {
  const parsed = parsePrefix(text)
  if ('code' in parsed) throw new Error(parsed.message)
  return parsed
}

const plan = (pool: { prefix: string; length?: number; skip?: boolean; excluded?: string[] }) =>
  planPool({
    prefix: prefix(pool.prefix),
    allocationPrefixLength: pool.length,
    skipFirstAndLast: pool.skip ?? false,
    excluded: (pool.excluded ?? []).map(prefix),
  })

describe('a pool', () => {
  it('is cut into single addresses where no length is given', () => {
    expect(plan({ prefix: '203.0.113.0/24' })).toEqual({
      family: 'IPV4',
      allocationPrefixLength: 32,
      blocks: 256n,
      unusable: [],
    })
    expect(plan({ prefix: '2001:db8::/112' })).toMatchObject({ blocks: 65_536n })
  })

  it('is cut into subnets of a length', () => {
    expect(plan({ prefix: '2001:db8::/48', length: 64 })).toMatchObject({ blocks: 65_536n })
  })

  it('never counts beyond what a block number can hold', () => {
    expect(plan({ prefix: '2001:db8::/32' })).toMatchObject({ blocks: 2n ** 48n })
  })

  it('leaves out its first and last block where asked', () => {
    expect(plan({ prefix: '203.0.113.0/24', skip: true }).unusable).toEqual([
      [0n, 1n],
      [255n, 256n],
    ])
  })

  it('leaves out every block that shares an address with an excluded prefix', () => {
    expect(
      plan({
        prefix: '2001:db8::/48',
        length: 64,
        excluded: ['2001:db8:0:10::1/128', '2001:db8:0:20::/60'],
      }).unusable,
    ).toEqual([
      [16n, 17n],
      [32n, 48n],
    ])
  })

  it('joins what is excluded twice, and ignores what lies outside', () => {
    expect(
      plan({
        prefix: '203.0.113.0/24',
        skip: true,
        excluded: ['203.0.113.0/30', '203.0.113.4/30', '203.0.112.0/24', '2001:db8::/32'],
      }).unusable,
    ).toEqual([
      [0n, 8n],
      [255n, 256n],
    ])
  })

  it('has exactly those blocks barred that an exclusion touches', () => {
    const excluded = fc.array(
      fc.record({
        last: fc.integer({ min: 0, max: 255 }),
        length: fc.integer({ min: 24, max: 32 }),
      }),
      { maxLength: 5 },
    )
    fc.assert(
      fc.property(excluded, fc.boolean(), (ranges, skip) => {
        const prefixes = ranges.map(({ last, length }) => {
          const size = 2 ** (32 - length)
          return {
            from: last - (last % size),
            size,
            text: `203.0.113.${last - (last % size)}/${length}`,
          }
        })
        const { unusable } = plan({
          prefix: '203.0.113.0/24',
          skip,
          excluded: prefixes.map(({ text }) => text),
        })
        for (let number = 0; number < 256; number += 1) {
          const barred =
            (skip && (number === 0 || number === 255)) ||
            prefixes.some(({ from, size }) => number >= from && number < from + size)
          const planned = unusable.some(
            ([from, to]) => BigInt(number) >= from && BigInt(number) < to,
          )
          expect(planned).toBe(barred)
        }
      }),
    )
  })
})
