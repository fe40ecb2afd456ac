import { accessSync, chmodSync, constants, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { startPostgres } from '../../dev/postgres.ts'
import { migrate } from '../../src/db/migrate.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The run's PostgreSQL server, and the name of its migrated, empty database to copy. */
    postgres: { url: string; template: string }
  }
}

/** Where files are kept in memory, if there is such a place: a run makes and drops 150 databases. */
function memory(): string | undefined {
  try {
    accessSync('/dev/shm', constants.W_OK)
    return '/dev/shm'
  } catch {
    return undefined
  }
}

/** One PostgreSQL server for the whole run, with a migrated database that each test file copies. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const directory = mkdtempSync(join(memory() ?? tmpdir(), 'load-balancer-tests-'))
  // As root PostgreSQL runs as another account, which has to pass through here.
  chmodSync(directory, 0o711)
  const server = await startPostgres({
    dataDir: join(directory, 'postgres'),
    // A crash may cost these data.
    settings: { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' },
  })
  const teardown = async (): Promise<void> => {
    await server.stop()
    rmSync(directory, { recursive: true, force: true })
  }
  try {
    await hashOnce(server.url)
    const template = 'migrated'
    await migrate(await server.createDatabase(template))
    project.provide('postgres', { url: server.url, template })
  } catch (error) {
    await teardown()
    throw error
  }
  return teardown
}

/** Whoever connects proves the password by 4,096 rounds of hashing otherwise; a run connects thousands of times. */
async function hashOnce(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query('SET scram_iterations = 1')
    const password = pg.escapeLiteral(decodeURIComponent(new URL(url).password))
    await client.query(`ALTER ROLE postgres PASSWORD ${password}`)
  } finally {
    await client.end()
  }
}
