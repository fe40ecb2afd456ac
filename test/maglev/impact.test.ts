import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { impactOf } from '../../src/maglev/impact.ts'
import { backendKey, TABLE_SIZE } from '../../src/maglev/table.ts'
import { keySets, made, THIRTEEN, THREE } from './sets.ts'

/** 64 backends of one subnet, and any number more. */
const many = (count: number) =>
  Array.from({ length: count }, (_, index) =>
    backendKey(`fd00:10:1::${(index + 1).toString(16)}`, 443),
  )
const change = (before: string[], after: string[]) => impactOf(made(before), made(after))
const told = (before: string[], after: string[]) => {
  const { moved, needless } = change(before, after)
  return `${moved}/${needless}`
}

describe('what changes cost (moved / of these needless, of 1021 slots)', () => {
  test('one of three leaves', () => {
    const costs = THREE.map((_, index) => told(THREE, THREE.toSpliced(index, 1)))
    expect(costs).toEqual(['366/25', '345/5', '363/23'])
  })

  test('one of thirteen leaves', () => {
    expect(told(THIRTEEN, THIRTEEN.toSpliced(1, 1))).toBe('110/31')
  })

  test('one of 64 leaves, comes, is replaced', () => {
    const costs = many(64).map((_, index) => told(many(64), many(64).toSpliced(index, 1)))
    expect(costs).toContain('65/49')
    expect(told(many(63), many(64))).toBe('70/54')
    const replaced = many(64).map((_, index) => told(many(64), many(65).toSpliced(index, 1)))
    expect(replaced).toContain('93/62')
  })

  test('another port for the same backends moves every slot', () => {
    const elsewhere = THREE.map((key) => key.replace(/8080$/, '8081'))
    expect(change(THREE, elsewhere)).toEqual({ moved: 1021, lost: 1021, taken: 0, needless: 0 })
  })

  test('no change moves nothing', () => {
    expect(change(THIRTEEN, THIRTEEN.toReversed()).moved).toBe(0)
  })

  test('nothing moves where nothing was served, all is lost where nothing is any more', () => {
    expect(impactOf(null, made(THREE)).moved).toBe(0)
    expect(impactOf(null, null).moved).toBe(0)
    expect(impactOf(made(THREE), null)).toMatchObject({ moved: TABLE_SIZE, lost: TABLE_SIZE })
  })
})

/** Two sets that may share backends. */
const changes = keySets({ least: 2, most: 100 }).chain((keys) => {
  const subset = fc.shuffledSubarray(keys, { minLength: 1, maxLength: Math.min(64, keys.length) })
  return fc.tuple(subset, subset)
})

describe('the impact of any change', () => {
  test('is the sum of its parts: lost slots are exactly those of who leaves, taken ones go to who comes', () => {
    fc.assert(
      fc.property(changes, ([before, after]) => {
        const from = made(before)
        const to = made(after)
        const { moved, lost, taken, needless } = impactOf(from, to)
        expect(moved).toBe(lost + taken + needless)
        const owners = [...from.slots].map((index, slot) => ({
          was: from.keys[index] ?? '',
          is: to.keys[to.slots[slot] ?? 0] ?? '',
        }))
        expect(moved).toBe(owners.filter(({ was, is }) => was !== is).length)
        expect(lost).toBe(owners.filter(({ was }) => !after.includes(was)).length)
        expect(taken).toBe(
          owners.filter(({ was, is }) => after.includes(was) && !before.includes(is)).length,
        )
      }),
    )
  })

  test('of one leaving 64 is needless for at most a tenth, on average for a twentieth', () => {
    const needless: number[] = []
    fc.assert(
      fc.property(keySets({ least: 64, most: 64 }), fc.nat(63), (keys, leaver) => {
        const cost = change(keys, keys.toSpliced(leaver, 1))
        expect(cost.taken).toBe(0)
        expect(cost.needless).toBeLessThanOrEqual(TABLE_SIZE / 10)
        needless.push(cost.needless)
      }),
      { numRuns: 200, seed: 1 },
    )
    const average = needless.reduce((sum, one) => sum + one, 0) / needless.length
    expect(average).toBeLessThanOrEqual(TABLE_SIZE / 20)
  })
})
