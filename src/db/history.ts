import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type pg from 'pg'

export const migrationsDirectory = fileURLToPath(
  new URL('../../prisma/migrations/', import.meta.url),
)

export type Migration = { name: string; sql: string }

/** A migration of a database, as `_prisma_migrations` has it. */
export type Applied = { name: string; checksum: string; finished: boolean }

/** What to do about a database that another build migrated. */
export const ANOTHER = 'run the build that migrated it, or take a new database'

/** How the migrations of a database stand to those that this build brings. */
export type Standing =
  | { kind: 'complete' }
  /** `first` is the first that it lacks. */
  | { kind: 'behind'; first: string }
  /** It was migrated by a build with other migrations; `how` says it of one of them. */
  | { kind: 'other'; how: string }
  /** One began and never ended, or goes on still. */
  | { kind: 'unfinished'; name: string }

/** The migrations that this build brings, in order. */
export async function shippedMigrations(): Promise<Migration[]> {
  const entries = await readdir(migrationsDirectory, { withFileTypes: true })
  const names = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
  return Promise.all(
    names.sort().map(async (name) => ({
      name,
      sql: await readFile(join(migrationsDirectory, name, 'migration.sql'), 'utf8'),
    })),
  )
}

let shipped: Promise<Migration[]> | undefined

/** How a database stands now. */
export async function standingOf(client: Pick<pg.Pool, 'query'>): Promise<Standing> {
  // Files of a build don't change under its processes.
  shipped ??= shippedMigrations()
  return standing(await shipped, await readApplied(client))
}

/**
 * Prisma's engine looks only for names that it lacks, so a migration that was edited or renamed since
 * is found here, before anything is applied on top of it. Of a newer build's, which come after all of
 * ours, nothing is said: processes of two builds serve one database while one replaces the other.
 */
export function standing(shipped: Migration[], applied: Applied[]): Standing {
  const ours = new Map(shipped.map(({ name, sql }) => [name, sql]))
  const last = shipped.at(-1)?.name ?? ''
  for (const { name, checksum } of applied.filter(({ finished }) => finished)) {
    const sql = ours.get(name)
    if (sql === undefined) {
      if (name < last) return { kind: 'other', how: `${name} was applied, which this build lacks` }
    } else if (!checksums(sql).includes(checksum)) {
      return { kind: 'other', how: `${name} was applied with another text than this build has` }
    }
  }
  const unfinished = applied.find(({ finished }) => !finished)
  if (unfinished !== undefined) return { kind: 'unfinished', name: unfinished.name }
  const names = new Set(applied.map(({ name }) => name))
  const lacking = shipped.find(({ name }) => !names.has(name))
  return lacking === undefined ? { kind: 'complete' } : { kind: 'behind', first: lacking.name }
}

/** As Prisma has it, which takes both kinds of line ends for the same text. */
const checksums = (sql: string): string[] =>
  [sql, sql.replaceAll(/\r?\n/g, '\n'), sql.replaceAll(/\r?\n/g, '\r\n')].map((text) =>
    createHash('sha256').update(text).digest('hex'),
  )

async function readApplied(client: Pick<pg.Pool, 'query'>): Promise<Applied[]> {
  const { rows: tables } = await client.query<{ there: boolean }>(
    `SELECT to_regclass('_prisma_migrations') IS NOT NULL AS there`,
  )
  if (tables[0]?.there !== true) return []
  const { rows } = await client.query<Applied>(`
SELECT migration_name AS name, checksum, finished_at IS NOT NULL AS finished
FROM _prisma_migrations WHERE rolled_back_at IS NULL ORDER BY migration_name`)
  return rows
}
