import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { whyForeign, whyUnusable } from '../../src/db/answering.ts'
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

const statement = async (url: string, text: string): Promise<void> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(text)
  await client.end()
}

const main = (path: string): string => new URL(`../../src/${path}`, import.meta.url).pathname

let directory: string
let kubeconfig: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'migrate-'))
  kubeconfig = join(directory, 'kubeconfig')
  await writeFile(
    kubeconfig,
    '{ "contexts": [], "clusters": [{ "name": "a", "cluster": { "server": "https://127.0.0.1:1" } }], "users": [] }',
  )
})
afterAll(() => rm(directory, { recursive: true }))

/** Runs a process on a database, until it ends by itself. */
const run = (path: string, url: string): Promise<unknown> =>
  promisify(execFile)(process.execPath, [main(path)], {
    env: {
      ...{ PATH: process.env['PATH'], DATABASE_URL: url, PORT: '0', METRICS_PORT: '0' },
      ...{ OIDC_ISSUER: 'http://localhost:1', OIDC_AUDIENCE: 'lb', KUBECONFIG: kubeconfig },
    },
    timeout: 60_000,
  })

describe.each([
  [
    'a migration was edited since',
    `UPDATE _prisma_migrations SET checksum = md5('') WHERE migration_name LIKE '%_placements'`,
    /^DATABASE_URL: .*20261130000200_placements was applied with another text than this build has: .+\n$/,
  ],
  [
    'a migration has another name now',
    `UPDATE _prisma_migrations SET migration_name = '20261130000100_functions' WHERE migration_name LIKE '%_addresses'`,
    /^DATABASE_URL: .*20261130000100_functions was applied, which this build lacks: .+\n$/,
  ],
])('a database of which %s', (_, edit, line) => {
  const database = useDatabase()

  test('ends the processes that would work with it, and the migration, with one line', async () => {
    await statement(database.url, edit)
    for (const path of ['db/main.ts', 'server/main.ts', 'workers/main.ts']) {
      await expect(run(path, database.url)).rejects.toMatchObject({
        code: 1,
        stdout: '',
        stderr: expect.stringMatching(line),
      })
    }
  })
})

describe('a database of which a migration never ended', () => {
  const database = useDatabase()

  test('is migrated no further and used by nobody, and one line says which one it is', async () => {
    await statement(
      database.url,
      `UPDATE _prisma_migrations SET finished_at = NULL WHERE migration_name LIKE '%_health'`,
    )
    await expect(run('db/main.ts', database.url)).rejects.toMatchObject({
      stderr: expect.stringMatching(
        /^DATABASE_URL: 20261130000500_health began and didn't end: .+\n$/,
      ),
    })
    const store = openStore({ connectionString: database.url })
    expect(await whyUnusable(store)).toContain("20261130000500_health hasn't ended")
    await store.close()
  })
})

describe('a database that lacks a migration', () => {
  const database = useDatabase({ empty: true })

  test('is waited for by the processes that use it, and they say what it waits for', async () => {
    const store = openStore({ connectionString: database.url })
    expect(await whyUnusable(store)).toContain('npm run migrate')
    expect(await whyForeign(store)).toBeUndefined()
    await migrate(database.url)
    expect(await whyUnusable(store)).toBeUndefined()
    await store.close()
  })
})

describe('a database that a newer build has migrated', () => {
  const database = useDatabase()

  test('still serves the processes that it finds, and those that are started again', async () => {
    await statement(
      database.url,
      `INSERT INTO _prisma_migrations (id, checksum, migration_name, finished_at)
       VALUES ('later', 'x', '99991231000000_later', now())`,
    )
    const store = openStore({ connectionString: database.url })
    expect(await whyUnusable(store)).toBeUndefined()
    expect(await whyForeign(store)).toBeUndefined()
    expect(await migrate(database.url)).toEqual([])
    await store.close()
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
