import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, inject } from 'vitest'
import { createDatabase, dropDatabase } from '../../dev/postgres.ts'
import type { Store } from '../../src/db/client.ts'

/**
 * A migrated database of its own for the test file (or the `describe`) that calls this at its top;
 * `url` may be read from `beforeAll` on. It is dropped afterwards, whoever is still connected.
 * `empty`: not migrated.
 */
export function useDatabase(options: { empty?: boolean } = {}): { readonly url: string } {
  const server = inject('postgres')
  const name = `test_${randomUUID()}`
  let url: string | undefined
  beforeAll(async () => {
    url = await createDatabase(server.url, name, options.empty ? undefined : server.template)
  })
  afterAll(() => dropDatabase(server.url, name))
  return {
    get url() {
      if (url === undefined) throw new Error('the database is there from beforeAll on, not before')
      return url
    },
  }
}

/** Nobody gets into a store's database, and whoever is in it is thrown out, until `back` is called. */
export async function databaseAway(
  store: Store,
): Promise<{ name: string; admin: pg.Client; back(): Promise<void> }> {
  const { rows } = await store.pool.query<{ name: string }>('SELECT current_database() AS name')
  const name = rows[0]?.name ?? ''
  const admin = new pg.Client({ connectionString: inject('postgres').url })
  await admin.connect()
  await admin.query(`ALTER DATABASE "${name}" ALLOW_CONNECTIONS false`)
  await admin.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [
    name,
  ])
  return {
    name,
    admin,
    async back() {
      await admin.query(`ALTER DATABASE "${name}" ALLOW_CONNECTIONS true`)
      await admin.end()
    },
  }
}

/**
 * A backup of a store's whole database, as it is now, which `restore` puts in its place. The PostgreSQL
 * that npm brings has no pg_dump, so it is a copy of the database's files by the server; whoever uses the
 * store is thrown out both times.
 */
export async function backedUp(store: Store): Promise<{ url: string; restore(): Promise<void> }> {
  const { name, admin, back } = await databaseAway(store)
  const backup = `${name}_backup`
  await admin.query(`CREATE DATABASE "${backup}" TEMPLATE "${name}"`)
  await back()
  const url = new URL(inject('postgres').url)
  url.pathname = name
  return {
    url: url.href,
    async restore() {
      const { admin, back } = await databaseAway(store)
      await admin.query(`DROP DATABASE "${name}" WITH (FORCE)`)
      await admin.query(`ALTER DATABASE "${backup}" RENAME TO "${name}"`)
      await back()
    },
  }
}
