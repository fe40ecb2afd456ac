import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fnv1a32, fnv1a64 } from '../../src/maglev/hash.ts'
import { backendKey, TABLE_SIZE, tableOf } from '../../src/maglev/table.ts'
import { keySets, made, THIRTEEN, THREE, TWO } from './sets.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
const digest = (slots: Uint8Array) => createHash('sha256').update(slots).digest('hex')

type Examples = { tables: { name: string; keys: string[]; slots: number[] }[] }
const examples = new URL('../../../shared/maglev-examples.json', import.meta.url)

describe('hashes', () => {
  // The vectors of the FNV specification (draft-eastlake-fnv, appendix C).
  test('are FNV-1a', () => {
    expect(fnv1a32(bytes(''))).toBe(0x811c9dc5)
    expect(fnv1a32(bytes('foobar'))).toBe(0xbf9cf968)
    expect(fnv1a64(bytes(''))).toEqual({ high: 0xcbf29ce4, low: 0x84222325 })
    expect(fnv1a64(bytes('foobar'))).toEqual({ high: 0x85944171, low: 0xf73967e8 })
  })

  test('of two halves are those of whole 64-bit numbers, also when hashing goes on', () => {
    const whole = (input: Uint8Array) => {
      let hash = 0xcbf29ce484222325n
      for (const byte of input) {
        hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n)
      }
      return { high: Number(hash >> 32n), low: Number(hash & 0xffffffffn) }
    }
    fc.assert(
      fc.property(fc.uint8Array(), fc.uint8Array(), (first, second) => {
        expect(fnv1a64(second, fnv1a64(first))).toEqual(whole(Buffer.concat([first, second])))
      }),
    )
  })
})

describe('a table', () => {
  test.each([
    ['two', TWO, '0c7ff800d4ea40ca8169a972968c3d87e7ef83f25620eae820e348d99ea2594b'],
    ['three', THREE, 'f3ab833d7a3b32c2981a20432381b39f7a7b71fb212ba78f368d35167bd35ef4'],
    ['thirteen', THIRTEEN, '7d6c3e65e06c838d65ad5d75567399bb0458e3103e02c6847ad036c99e9df941'],
  ])('of %s is the one that the data plane makes, by its digest', (_name, keys, sha256) => {
    expect(digest(made(keys).slots)).toBe(sha256)
  })

  test('is the one that the data plane makes, slot by slot', (context) => {
    if (!existsSync(examples)) return context.skip('there are no examples beside this checkout')
    const { tables }: Examples = JSON.parse(readFileSync(examples, 'utf8'))
    expect(tables).toHaveLength(3)
    for (const { keys, slots } of tables) {
      const table = made(keys)
      expect(table.keys).toEqual(keys)
      expect([...table.slots]).toEqual(slots)
    }
  })

  test('is the same whatever the order of the set', () => {
    fc.assert(
      fc.property(
        keySets().chain((keys) =>
          fc.tuple(fc.constant(keys), fc.shuffledSubarray(keys, { minLength: keys.length })),
        ),
        ([keys, shuffled]) => {
          expect(made(shuffled)).toEqual(made(keys))
        },
      ),
    )
  })

  test('gives every slot to one of the set, and shares differ by at most one slot', () => {
    fc.assert(
      fc.property(keySets(), (keys) => {
        const { slots } = made(keys)
        expect(slots).toHaveLength(TABLE_SIZE)
        const shares = new Array<number>(keys.length).fill(0)
        for (const index of slots) shares[index] = (shares[index] ?? Number.NaN) + 1
        expect(shares).toHaveLength(keys.length)
        expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(1)
      }),
    )
  })

  test('has its keys in the order of their bytes, ports included', () => {
    const at = (port: number) => backendKey('fd00::1', port)
    expect(made([at(9), at(80), at(443)]).keys).toEqual([at(443), at(80), at(9)])
    expect(made(['fd00::a:1', 'fd00::10:1', '10.0.0.1:1']).keys).toEqual([
      '10.0.0.1:1',
      'fd00::10:1',
      'fd00::a:1',
    ])
  })

  test('is refused for an empty set, one key twice, and more than 64', () => {
    const keys = Array.from({ length: 65 }, (_, index) => backendKey('fd00::1', index + 1))
    expect(tableOf([])).toMatchObject({ refused: 'EMPTY' })
    expect(tableOf(['fd00::1:80', 'fd00::2:80', 'fd00::1:80'])).toMatchObject({
      refused: 'DUPLICATE',
    })
    expect(tableOf(keys)).toMatchObject({ refused: 'TOO_MANY' })
    expect(tableOf(keys.slice(1))).toHaveProperty('slots')
  })
})
