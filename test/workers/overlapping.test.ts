import pg from 'pg'
import pino from 'pino'
import { afterAll, expect, test, vi } from 'vitest'
import { openStore } from '../../src/db/client.ts'
import { startWorkers } from '../../src/workers/workers.ts'
import { useDatabase } from '../support/database.ts'

const database = useDatabase()
afterAll(() => vi.useRealTimers())

test('placements are not compared once more while they still are, however long it takes', async () => {
  // So that they wait for as long as the test looks.
  const store = openStore({ connectionString: database.url, deadline: 60_000 })
  const other = new pg.Client({ connectionString: database.url })
  await other.connect()
  // What is compared can't be read for as long as this is open.
  await other.query('BEGIN; LOCK load_balancer IN ACCESS EXCLUSIVE MODE')
  vi.useFakeTimers({ toFake: ['setInterval'] })
  const workers = startWorkers({
    store,
    fleet: {
      get() {
        throw new Error('there are no clusters')
      },
      release: async () => undefined,
    },
    log: pino({ level: 'silent' }),
  })
  const comparing = async () => {
    const { rows } = await store.pool.query(
      `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()
         AND query LIKE 'SELECT id FROM load_balancer WHERE id >%'`,
    )
    return rows.length
  }
  vi.advanceTimersByTime(180_000)
  // Behind all that they asked for, since connections are had in turn.
  await store.pool.query('SELECT')
  await expect.poll(comparing).toBe(1)
  await other.end()
  await workers.close()
  await store.close()
})
