/** How a pool's prefix is cut into blocks, and which of them are never handed out. */
import ipaddr from 'ipaddr.js'
import type { AddressFamily, Prefix } from './address.ts'

/** Block numbers are bigints in the store; no pool hands out more than this many. */
const MOST_BLOCKS = 2n ** 48n

/** Of IPv4 there is a row for each address: 65,536 for a /16, the largest pool. */
export const SHORTEST_IPV4_PREFIX = 16

export type PoolPlan = {
  family: AddressFamily
  allocationPrefixLength: number
  /** How many blocks the prefix is cut into. */
  blocks: bigint
  /** Half-open ranges of block numbers that are never handed out, in order, apart from each other. */
  unusable: [from: bigint, to: bigint][]
}

/**
 * Cuts a prefix into blocks of `allocationPrefixLength` (128, or less for a subnet each; 32 for IPv4).
 * `skipFirstAndLast` leaves out the first and the last block, `excluded` every block that shares an
 * address with one of the prefixes.
 */
export function planPool(pool: {
  prefix: Prefix
  allocationPrefixLength?: number | undefined
  skipFirstAndLast: boolean
  excluded: Prefix[]
}): PoolPlan {
  const { family } = pool.prefix
  const bits = family === 'IPV4' ? 32 : 128
  const length = pool.allocationPrefixLength ?? bits
  const cut = 2n ** BigInt(length - pool.prefix.length)
  const blocks = cut < MOST_BLOCKS ? cut : MOST_BLOCKS
  const shift = BigInt(bits - length)
  const start = numberOf(pool.prefix)
  const barred: [bigint, bigint][] = pool.excluded
    .filter((excluded) => excluded.family === family)
    .map((excluded) => {
      const from = numberOf(excluded) - start
      const to = from + 2n ** BigInt(bits - excluded.length)
      return [from >> shift, (to + (1n << shift) - 1n) >> shift]
    })
  if (pool.skipFirstAndLast) barred.push([0n, 1n], [cut - 1n, cut])
  return { family, allocationPrefixLength: length, blocks, unusable: joined(barred, blocks) }
}

/** Sorted, cut to the pool, and those that touch made one. */
function joined(ranges: [bigint, bigint][], blocks: bigint): [bigint, bigint][] {
  const result: [bigint, bigint][] = []
  const within = ranges
    .map(([from, to]): [bigint, bigint] => [from < 0n ? 0n : from, to > blocks ? blocks : to])
    .filter(([from, to]) => from < to)
    .sort(([a], [b]) => (a < b ? -1 : 1))
  for (const [from, to] of within) {
    const last = result.at(-1)
    if (last === undefined || from > last[1]) result.push([from, to])
    else if (to > last[1]) last[1] = to
  }
  return result
}

const numberOf = ({ prefix }: Prefix): bigint =>
  ipaddr
    .parse(prefix.slice(0, prefix.indexOf('/')))
    .toByteArray()
    .reduce((number, byte) => (number << 8n) | BigInt(byte), 0n)

/**
 * What has to be added to the numbers of a pool's blocks (of `/length`) when its prefix becomes
 * another one that shares addresses with it.
 */
export function renumbered(before: Prefix, after: Prefix, length: number): bigint {
  const bits = before.family === 'IPV4' ? 32 : 128
  return (numberOf(before) - numberOf(after)) >> BigInt(bits - length)
}
