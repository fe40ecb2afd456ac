import { getEventListeners } from 'node:events'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openStore, type Store } from '../../src/db/client.ts'
import { onHint } from '../../src/domain/hints.ts'
import { useDatabase } from '../support/database.ts'

const database = useDatabase()
let store: Store
beforeAll(() => {
  store = openStore({ connectionString: database.url })
})
afterAll(() => store.close())

test('who listens for long hears again after every connection that broke, and leaves nothing behind', async () => {
  const ending = new AbortController()
  let heard: () => void = () => undefined
  const next = () =>
    new Promise<void>((resolve) => {
      heard = resolve
    })
  const listening = next()
  onHint(store, ending.signal, () => heard())
  await listening
  const before = getEventListeners(ending.signal, 'abort').length
  for (let broken = 0; broken < 5; broken += 1) {
    const again = next()
    await store.pool.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE 'LISTEN %'`,
    )
    await again
  }
  expect(getEventListeners(ending.signal, 'abort')).toHaveLength(before)
  ending.abort()
  await expect.poll(() => getEventListeners(ending.signal, 'abort')).toEqual([])
})
