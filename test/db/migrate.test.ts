import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { openStore } from '../../src/db/client.ts'
import { differences, migrate, renewLogEpoch } from '../../src/db/migrate.ts'
import { headCursor } from '../../src/domain/events/batch.ts'
import { openEventLog } from '../../src/domain/events/log.ts'
import { useDatabase } from '../support/database.ts'

describe('an empty database', () => {
  const database = useDatabase({ empty: true })

  test('is migrated once by two processes that start at the same time', async () => {
    const [first, second] = await Promise.all([migrate(database.url), migrate(database.url)])
    expect([first.length, second.length].sort()).toEqual([0, first.length + second.length])
    expect(first.length + second.length).toBeGreaterThan(0)
  })

  test('records its migrations where prisma migrate looks for them', async () => {
    const client = new pg.Client({ connectionString: database.url })
    await client.connect()
    const { rows } = await client.query('SELECT finished_at FROM _prisma_migrations')
    await client.end()
    expect(rows.every((row) => row.finished_at instanceof Date)).toBe(true)
  })
})

describe('a migrated database', () => {
  const database = useDatabase()

  test("doesn't differ from schema.prisma", async () => {
    expect(await differences(database.url)).toBe('')
  })

  test('has nothing to apply', async () => {
    expect(await migrate(database.url)).toEqual([])
  })

  test('gets a new log epoch and keeps its instance when a backup was restored', async () => {
    const store = openStore({ connectionString: database.url })
    const before = await store.prisma.store.findFirstOrThrow()
    await renewLogEpoch(database.url)
    const after = await store.prisma.store.findFirstOrThrow()
    await store.close()
    expect(after.logEpoch).not.toBe(before.logEpoch)
    expect(after.instance).toBe(before.instance)
  })

  test('restored from a server that had counted further tells what is new, and is continued from', async () => {
    const store = openStore({ connectionString: database.url })
    const event = (seq: number) =>
      store.prisma.event.create({
        data: {
          seq,
          at: new Date(),
          project: 'p',
          objectKind: 'LoadBalancer',
          objectId: crypto.randomUUID(),
          version: 1,
          generation: 1,
          reason: 'LoadBalancerCreated',
          message: `the ${seq}th`,
          actorKind: 'SYSTEM',
          actorName: 'it',
        },
      })
    await event(1)
    await event(2)
    await store.pool.query(
      `UPDATE event SET xid = ((xid::text)::bigint + 1000000000 - seq)::text::xid8`,
    )
    await store.pool.query(`UPDATE store SET removed_up_to = '999999999'`)
    await renewLogEpoch(database.url)
    const cursor = await headCursor(store)
    await event(3)
    const log = openEventLog(store)
    const seen: string[] = []
    for await (const batch of log.follow(cursor, AbortSignal.timeout(5_000))) {
      seen.push(...batch.events.map(({ message }) => message))
      if (seen.length > 0) break
    }
    expect(seen).toEqual(['the 3th'])
    const { rows } = await store.pool.query('SELECT message FROM event ORDER BY xid, seq')
    expect(rows.map(({ message }) => message)).toEqual(['the 1th', 'the 2th', 'the 3th'])
    log.close()
    await store.close()
  })

  test('with a table that schema.prisma lacks differs by that table', async () => {
    const client = new pg.Client({ connectionString: database.url })
    await client.connect()
    await client.query('CREATE TABLE astray (id int PRIMARY KEY)')
    await client.end()
    expect(await differences(database.url)).toContain('DROP TABLE "astray"')
  })
})
