import { setImmediate as turn } from 'node:timers/promises'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { openStore, type Store } from '../../src/db/client.ts'
import { openEventLog } from '../../src/domain/events/log.ts'
import { useDatabase } from '../support/database.ts'

const database = useDatabase()
let store: Store
beforeAll(() => {
  store = openStore({ connectionString: database.url })
})
afterAll(() => store.close())

test('those who wait for news ask no more than one at a time, however many hints come', async () => {
  const queries = vi.spyOn(store.pool, 'query')
  const log = openEventLog(store)
  const ended = new AbortController()
  onTestFinished(() => {
    ended.abort()
    log.close()
    queries.mockRestore()
  })
  const followed = log.follow(await log.head(), ended.signal)[Symbol.asyncIterator]()
  const reads = () =>
    queries.mock.calls.filter(([query]) => Object(query).name === 'read-log').length
  const answered = async () => {
    await Promise.all(queries.mock.results.map(({ value }) => value))
    await turn()
  }
  const next = followed.next()
  await expect.poll(reads).toBeGreaterThan(0)
  // It found nothing, and waits.
  await answered()
  const before = reads()
  for (let hints = 0; hints < 100; hints += 1) log.hint()
  await answered()
  await answered()
  // One, one more for what the first may have missed, and what the log asks by itself now and then.
  expect(reads() - before).toBeGreaterThan(0)
  expect(reads() - before).toBeLessThan(10)
  ended.abort()
  expect((await next).done).toBe(true)
})
