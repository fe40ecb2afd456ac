/**
 * The table by which the data plane spreads connections over backends: Maglev hashing, exactly as
 * galactic builds it. Held to tables that its own code made.
 */
import { fnv1a64, remainder } from './hash.ts'

/** A prime. */
export const TABLE_SIZE = 1021
/** More backends than this make no table. */
export const MOST_KEYS = 64

export type Table = {
  /** In the order of the table's indexes: by the bytes of the whole key. */
  keys: readonly string[]
  /** For each slot the index of its backend in `keys`. */
  slots: Uint8Array
}

/** A set that makes no table, and why. */
export type BadSet = { refused: 'EMPTY' | 'DUPLICATE' | 'TOO_MANY'; message: string }

/** What the data plane calls a backend: RFC 5952 address without brackets, and port. */
export const backendKey = (address: string, port: number): string => `${address}:${port}`

const OFFSET_SEED = Uint8Array.of(0xda, 0x7a, 0x5e, 0xed, 0x0f, 0xfc, 0xe7, 0xe5)
const SKIP_SEED = Uint8Array.of(0x5e, 0xed, 0xda, 0x7a, 0x1c, 0xeb, 0x00, 0xc5)

const encoder = new TextEncoder()

/** The table of a set of backend keys, the same in whatever order they come. */
export function tableOf(set: Iterable<string>): Table | BadSet {
  // Keys are ASCII, where the order of code units is that of bytes: `:443` < `:80` < `:9`.
  const keys = [...set].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0))
  if (keys.length === 0) return { refused: 'EMPTY', message: 'No backend makes no table.' }
  if (keys.length > MOST_KEYS) {
    const message = `${keys.length} backends are more than the ${MOST_KEYS} that a table can have.`
    return { refused: 'TOO_MANY', message }
  }
  const twice = keys.find((key, index) => key === keys[index + 1])
  if (twice !== undefined) {
    return { refused: 'DUPLICATE', message: `${twice} is in the set twice.` }
  }
  return { keys, slots: fill(keys) }
}

const FREE = 0xff

/** Backends take turns; each claims the next slot of its own walk that is free. */
function fill(keys: readonly string[]): Uint8Array {
  const slots = new Uint8Array(TABLE_SIZE).fill(FREE)
  const walks = keys.map(walkOf)
  for (let taken = 0; ; ) {
    for (let index = 0; index < walks.length; index += 1) {
      const walk = walks[index]
      if (walk === undefined) continue
      let { at } = walk
      while (slots[at] !== FREE) {
        at += walk.skip
        if (at >= TABLE_SIZE) at -= TABLE_SIZE
      }
      slots[at] = index
      walk.at = at
      taken += 1
      if (taken === TABLE_SIZE) return slots
    }
  }
}

/** A walk visits every slot, since the size is prime and the skip is from 1 to 1020. */
function walkOf(key: string): { at: number; skip: number } {
  const hashed = fnv1a64(encoder.encode(key))
  return {
    at: remainder(fnv1a64(OFFSET_SEED, hashed), TABLE_SIZE),
    skip: remainder(fnv1a64(SKIP_SEED, hashed), TABLE_SIZE - 1) + 1,
  }
}
