import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openStore, type Store } from '../../src/db/client.ts'
import { readCursor, writeCursor } from '../../src/domain/events/cursor.ts'
import { Conditions, InvalidCursor, type PageRequest, readPage } from '../../src/domain/paging.ts'
import { useDatabase } from '../support/database.ts'

const database = useDatabase()
let store: Store
beforeAll(() => {
  store = openStore({ connectionString: database.url })
})
afterAll(() => store.close())

const list = (page: PageRequest) =>
  readPage<number>(
    store.pool,
    {
      from: 'generate_series(1, 9) AS n',
      item: 'n',
      id: `('00000000-0000-4000-8000-00000000000' || n)::uuid`,
      order: { sql: 'n::bigint', type: 'bigint', descending: false },
      conditions: new Conditions(),
    },
    page,
  )

/** Texts that a lenient decoder takes for the one that is given, or for something like it. */
const garbled = (cursor: string): fc.Arbitrary<string> =>
  fc.oneof(
    fc.constantFrom('A', '=', '==', ' ', '\n', '!', '.', 'é').map((more) => `${cursor}${more}`),
    fc.constantFrom('=', ' ', '\n', '!').map((more) => `${more}${cursor}`),
    fc.nat(cursor.length).map((at) => `${cursor.slice(0, at)}*${cursor.slice(at)}`),
    fc.nat(cursor.length - 1).map((at) => cursor.slice(0, at)),
  )

const position = fc.record({
  epoch: fc.uuid(),
  xid: fc.bigInt({ min: 0n, max: 10n ** 18n }).map(String),
  seq: fc.bigInt({ min: 0n, max: 10n ** 17n }).map(String),
})

test('a cursor of the log is the position that it was written of, and of each position there is one', () => {
  fc.assert(
    fc.property(
      position.chain((at) => fc.tuple(fc.constant(at), garbled(writeCursor(at)))),
      ([at, like]) => {
        expect(readCursor(writeCursor(at))).toEqual(at)
        // Cut off at its end it may be that of another position.
        const other = readCursor(like)
        expect(other === undefined || writeCursor(other) === like).toBe(true)
        expect(other).not.toEqual(at)
      },
    ),
  )
})

test.each([
  ['a letter appended', 'A'],
  ['padding', '='],
])('a cursor of the log with %s is none', (_, more) => {
  const cursor = writeCursor({ epoch: crypto.randomUUID(), xid: '1', seq: '2' })
  expect(readCursor(`${cursor}${more}`)).toBeUndefined()
})

test('one position has one cursor: zeros before a number are no other', () => {
  const epoch = crypto.randomUUID()
  expect(readCursor(writeCursor({ epoch, xid: '01', seq: '2' }))).toBeUndefined()
  expect(readCursor(writeCursor({ epoch, xid: '1', seq: '00' }))).toBeUndefined()
})

test('a cursor of a list goes on after its row, and nothing like it does', async () => {
  const { items } = await list({ first: 3 })
  const cursor = items[2]?.cursor ?? ''
  expect((await list({ first: 2, after: cursor })).items.map(({ item }) => item)).toEqual([4, 5])
  await fc.assert(
    fc.asyncProperty(garbled(cursor), async (like) => {
      await expect(list({ first: 1, after: like })).rejects.toThrow(InvalidCursor)
      await expect(list({ last: 1, before: like })).rejects.toThrow(InvalidCursor)
    }),
  )
})
