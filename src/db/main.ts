// npm run migrate [-- --restored]: brings the database of DATABASE_URL up to date, for operators.
import { parseArgs } from 'node:util'
import { CannotMigrate, DatabaseUnreachable, migrate, renewLogEpoch } from './migrate.ts'

const { DATABASE_URL: connectionString } = process.env

try {
  const { values } = parseArgs({ options: { restored: { type: 'boolean', default: false } } })
  if (connectionString === undefined || !URL.canParse(connectionString)) {
    refuse('DATABASE_URL: expected a URL like postgres://user:password@host:5432/database')
  } else {
    await bringUpToDate(connectionString, values.restored)
  }
} catch (error) {
  const words = error instanceof Error ? error.message.trim() : String(error)
  if (error instanceof DatabaseUnreachable) refuse(`DATABASE_URL: can't connect: ${words}`)
  else if (error instanceof CannotMigrate) refuse(`DATABASE_URL: ${words}`)
  else refuse(words)
}

async function bringUpToDate(url: string, restored: boolean): Promise<void> {
  const applied = await migrate(url)
  for (const name of applied) console.log(`applied ${name}`)
  if (applied.length === 0) console.log('the database is up to date')
  if (!restored) return
  await renewLogEpoch(url)
  console.log('the event log has a new epoch: its readers start from a fresh snapshot')
}

function refuse(line: string): void {
  console.error(line)
  process.exitCode = 1
}
