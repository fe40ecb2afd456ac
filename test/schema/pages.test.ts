import fc from 'fast-check'
import { expect, test } from 'vitest'
import { InvalidCursor } from '../../src/domain/paging.ts'
import { connection, pageOfList, pageRequest, total } from '../../src/schema/pages.ts'

const KEYS = {
  of: (item: number) => String(item).padStart(3, '0'),
  cursor: String,
  read: (cursor: string) => (/^\d+$/.test(cursor) ? cursor.padStart(3, '0') : null),
}

test('twenty come where nothing is said, and at most a hundred', () => {
  expect(pageRequest({})).toEqual({ first: 20 })
  expect(pageRequest({ first: null, last: 3, before: 'x' })).toEqual({ last: 3, before: 'x' })
  expect(pageRequest({ first: 0 })).toEqual({ first: 0 })
  expect(pageRequest({ first: 100, after: 'x' })).toEqual({ first: 100, after: 'x' })
  for (const wrong of [{ first: 101 }, { first: -1 }, { last: 101 }, { last: -1 }]) {
    expect(() => pageRequest(wrong)).toThrow(/0 to 100/)
  }
  expect(() => pageRequest({ first: 1, last: 1 })).toThrow(/not both/)
})

test('pages put together are the whole list, from either end', () => {
  fc.assert(
    fc.property(fc.nat(50), fc.integer({ min: 1, max: 12 }), (length, size) => {
      const list = Array.from({ length }, (_, index) => index)
      const forward: number[] = []
      for (let after: string | undefined, more = true; more; ) {
        const page = pageOfList(list, { first: size, ...(after ? { after } : {}) }, KEYS)
        forward.push(...page.items.map(({ item }) => item))
        expect(page.hasPreviousPage).toBe(after !== undefined)
        after = page.items.at(-1)?.cursor
        more = page.hasNextPage
      }
      expect(forward).toEqual(list)
      const backward: number[] = []
      for (let before: string | undefined, more = true; more; ) {
        const page = pageOfList(list, { last: size, ...(before ? { before } : {}) }, KEYS)
        backward.unshift(...page.items.map(({ item }) => item))
        before = page.items[0]?.cursor
        more = page.hasPreviousPage
      }
      expect(backward).toEqual(list)
    }),
  )
})

test('a cursor keeps its place when its item is gone, and rubbish is refused', () => {
  expect(
    pageOfList([1, 3, 5], { first: 2, after: '2' }, KEYS).items.map(({ item }) => item),
  ).toEqual([3, 5])
  expect(
    pageOfList([1, 3, 5], { last: 1, before: '4' }, KEYS).items.map(({ item }) => item),
  ).toEqual([3])
  expect(() => pageOfList([1], { first: 1, after: 'rubbish' }, KEYS)).toThrow(InvalidCursor)
})

test('a list that is whole on its page counts what it shows, also when more came meanwhile', () => {
  const whole = { items: [{ cursor: 'a', item: 1 }], hasNextPage: false, hasPreviousPage: false }
  const counted = () => 2
  expect(total(connection(whole, counted))).toBe(1)
  expect(total(connection({ ...whole, hasNextPage: true }, counted))).toBe(2)
  expect(total(connection({ ...whole, hasPreviousPage: true }, counted))).toBe(2)
})
