import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { MigrationList, SchemaEngine } from '@prisma/schema-engine-wasm/schema_engine_bg'
import pg from 'pg'
import { ANOTHER, migrationsDirectory, shippedMigrations, standingOf } from './history.ts'
import { withSchemaEngine } from './schema-engine.ts'

const prismaDirectory = fileURLToPath(new URL('../../prisma/', import.meta.url))

// Any number will do as long as nobody else uses it in the same database.
const migrationLock = 7_264_001

/** No connection could be made; the message says why in the driver's words. */
export class DatabaseUnreachable extends Error {
  override readonly name = 'DatabaseUnreachable'
}

/** The database was migrated by another build, or not to its end: the message says `how`, and what to do. */
export class CannotMigrate extends Error {
  override readonly name = 'CannotMigrate'
  readonly how: string

  constructor(how: string, remedy: string) {
    super(`${how}: ${remedy}`)
    this.how = how
  }
}

/**
 * Applies the migrations that the database lacks, in order, and answers their names. Processes
 * that start at once take turns; a migration that fails leaves nothing of itself behind but its
 * row in `_prisma_migrations`, and is reported with PostgreSQL's words.
 */
export async function migrate(connectionString: string): Promise<string[]> {
  const client = await connect(connectionString)
  try {
    await client.query(`SET lock_timeout = '120s'`)
    await client.query('SELECT pg_advisory_lock($1)', [migrationLock])
    await requireOurs(client)
    const migrationsList = await readMigrations()
    const { appliedMigrationNames } = await withEngine(connectionString, (engine) =>
      engine.applyMigrations({ migrationsList, filters: noFilters }),
    )
    return appliedMigrationNames
  } finally {
    await client.end()
  }
}

/**
 * The SQL that would bring the migrated database to what schema.prisma says; '' when they agree.
 * Prisma sees neither functions nor CHECK and EXCLUDE constraints, and leaves those alone.
 */
export async function differences(connectionString: string): Promise<string> {
  const schema = await readSchema()
  const { stdout, exitCode } = await withEngine(connectionString, (engine) =>
    engine.diff({
      from: { tag: 'schemaDatasource', files: [schema], configDir: prismaDirectory },
      to: { tag: 'schemaDatamodel', files: [schema] },
      script: true,
      exitCode: true,
      filters: noFilters,
    }),
  )
  // 2: there is a difference. Without one the script is a comment that says so.
  return exitCode === 2 ? (stdout ?? '').trim() : ''
}

/**
 * Gives the event log a new epoch, the last step of restoring a backup: clients hold cursors of
 * events that the restored log has never had.
 */
export async function renewLogEpoch(connectionString: string): Promise<void> {
  const client = await connect(connectionString)
  try {
    // A dump that comes from another server may have events of transactions that were numbered further
    // than this one's are: they would follow all that is logged from now on. Of one age they keep their order.
    await client.query(`
UPDATE event SET xid = '0' WHERE EXISTS (SELECT FROM event WHERE xid >= pg_snapshot_xmin(pg_current_snapshot()))`)
    await client.query('UPDATE store SET log_epoch = $1, removed_up_to = NULL', [
      crypto.randomUUID(),
    ])
  } finally {
    await client.end()
  }
}

/** Without the deadlines of the store's connections: a migration takes as long as it takes. */
async function connect(connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: 10_000 })
  try {
    await client.connect()
  } catch (cause) {
    throw new DatabaseUnreachable(cause instanceof Error ? cause.message : String(cause), { cause })
  }
  return client
}

/** Nothing is applied on top of what this build doesn't know. */
async function requireOurs(client: pg.Client): Promise<void> {
  const standing = await standingOf(client)
  if (standing.kind === 'other') throw new CannotMigrate(standing.how, ANOTHER)
  if (standing.kind !== 'unfinished') return
  const { name } = standing
  throw new CannotMigrate(
    `${name} began and didn't end`,
    `mend what it failed of, npx prisma migrate resolve --rolled-back ${name}, and migrate again`,
  )
}

const noFilters = { externalTables: [], externalEnums: [] }

async function withEngine<T>(
  connectionString: string,
  use: (engine: SchemaEngine) => Promise<T>,
): Promise<T> {
  return withSchemaEngine({ connectionString, schema: await readSchema() }, use)
}

async function readSchema(): Promise<{ path: string; content: string }> {
  const path = join(prismaDirectory, 'schema.prisma')
  return { path, content: await readFile(path, 'utf8') }
}

async function readMigrations(): Promise<MigrationList> {
  const migrations = await shippedMigrations()
  return {
    baseDir: migrationsDirectory,
    lockfile: {
      path: 'migration_lock.toml',
      content: await readFile(join(migrationsDirectory, 'migration_lock.toml'), 'utf8'),
    },
    shadowDbInitScript: '',
    migrationDirectories: migrations.map(({ name, sql }) => ({
      path: name,
      migrationFile: { path: 'migration.sql', content: { tag: 'ok' as const, value: sql } },
    })),
  }
}
