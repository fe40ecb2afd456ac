import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, fchownSync, openSync, readFileSync } from 'node:fs'
import { createServer, Socket } from 'node:net'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { type Account, accountFor, type Launcher, launcher } from './account.ts'
import { openDataDirectory, programs } from './data-directory.ts'
import { clearDataDirectory, end, recordRunner } from './postmaster.ts'

export type Postgres = {
  /** A superuser's connection string of the database `postgres`. */
  url: string
  port: number
  /** Creates a database, as a copy of `template` where that is given, and answers its URL. */
  createDatabase(name: string, template?: string): Promise<string>
  /** The URL of a database that is created where it is missing. */
  ensureDatabase(name: string): Promise<string>
  dropDatabase(name: string): Promise<void>
  /** Resolves when the server has ended, asked or not. */
  ended: Promise<void>
  /** Close every client first: those still connected are cut off. */
  stop(): Promise<void>
}

/**
 * Runs the PostgreSQL that npm brought, on 127.0.0.1 only, with its data in `dataDir` (made where
 * missing or empty). It ends with this process, however that ends; see `clearDataDirectory` for
 * what happens to a server that is found running. As root it runs as an ordinary account.
 */
export async function startPostgres(options: {
  dataDir: string
  /** 0 or absent: a free one. */
  port?: number
  settings?: Record<string, string | number>
}): Promise<Postgres> {
  const dataDir = resolve(options.dataDir)
  const account = accountFor(dataDir)
  const password = await openDataDirectory(dataDir, account)
  await clearDataDirectory(dataDir)
  const launch = launcher(account, programs().postgres, dataDir)
  // A free port may be taken by somebody else before PostgreSQL listens there: then another one.
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePort(options.port ?? 0)
    const url = `postgres://postgres:${password}@127.0.0.1:${port}/postgres`
    const server = serve({ dataDir, port, settings: options.settings ?? {}, launch, account })
    const failure = await ready(server, url)
    if (failure === undefined) return { url, port, ...databases(url), ...server }
    await server.stop()
    const taken = (await freePort(port).catch(() => 0)) !== port
    if (options.port || !taken || attempt === 3) {
      throw new Error(`PostgreSQL didn't start: ${failure.trim()}\n${lastLines(dataDir)}`.trim())
    }
  }
}

/** Creates the database `name` on the server at `url`, as a copy of `template` where given. */
export async function createDatabase(
  url: string,
  name: string,
  template?: string,
): Promise<string> {
  const copy =
    template === undefined
      ? ''
      : ` TEMPLATE ${pg.escapeIdentifier(template)} STRATEGY ${copyStrategy}`
  await administer(url, `CREATE DATABASE ${pg.escapeIdentifier(name)}${copy}`)
  return databaseUrl(url, name)
}

/** Drops the database `name`, cutting off whoever is connected to it. */
export async function dropDatabase(url: string, name: string): Promise<void> {
  await administer(url, `DROP DATABASE IF EXISTS ${pg.escapeIdentifier(name)} WITH (FORCE)`)
}

// Copying files beats writing the copy to the log while fsync is off, as it is in tests
// (measured here, an almost empty database: 10 ms against 19–29 ms).
const copyStrategy = 'FILE_COPY'

function databases(
  url: string,
): Pick<Postgres, 'createDatabase' | 'ensureDatabase' | 'dropDatabase'> {
  return {
    createDatabase: (name, template) => createDatabase(url, name, template),
    dropDatabase: (name) => dropDatabase(url, name),
    async ensureDatabase(name) {
      try {
        return await createDatabase(url, name)
      } catch (error) {
        if (error instanceof pg.DatabaseError && error.code === '42P04') {
          return databaseUrl(url, name)
        }
        throw error
      }
    },
  }
}

function databaseUrl(url: string, name: string): string {
  return Object.assign(new URL(url), { pathname: `/${encodeURIComponent(name)}` }).href
}

async function administer(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}

type Server = Pick<Postgres, 'ended' | 'stop'> & { running(): boolean }

function serve(options: {
  dataDir: string
  port: number
  settings: Record<string, string | number>
  launch: Launcher
  account: Account | undefined
}): Server {
  const { dataDir, account } = options
  const settings = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    port: options.port,
    max_connections: 200,
    timezone: 'UTC',
    log_timezone: 'UTC',
    log_checkpoints: 'off',
    // Refused statements are the client's to report; the log keeps what concerns the server.
    log_min_messages: 'log',
    ...options.settings,
  }
  const { file, args, ids } = options.launch(programs().postgres, [
    ...['-D', dataDir],
    ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ])
  const log = openSync(join(dataDir, 'server.log'), 'w', 0o600)
  if (account) fchownSync(log, account.uid, account.gid)
  // A session of its own: Ctrl-C in the terminal is for us, and clients are closed before it.
  const child = spawn(file, args, {
    ...ids,
    cwd: dataDir,
    detached: true,
    stdio: ['ignore', log, log],
  })
  closeSync(log)
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  child.once('exit', () => end())
  child.once('error', () => end())
  const running = (): boolean => child.pid !== undefined && isRunning(child)
  if (child.pid !== undefined) {
    recordRunner(dataDir, child.pid)
    guard(child)
  }
  return { ended, running, stop: () => stop(child, running, ended) }
}

const isRunning = (child: ChildProcess): boolean =>
  child.exitCode === null && child.signalCode === null

async function stop(
  child: ChildProcess,
  running: () => boolean,
  ended: Promise<void>,
): Promise<void> {
  if (child.pid !== undefined) await end(child.pid, () => !running())
  await ended
}

/** Ends the server when this process is gone, also by SIGKILL: its end of the pipe then closes. */
function guard(server: ChildProcess): void {
  const watcher = spawn('/bin/sh', ['-c', 'read -r _; kill -INT "$1"', 'sh', String(server.pid)], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  watcher.unref()
  if (watcher.stdin instanceof Socket) watcher.stdin.unref()
  server.once('exit', () => watcher.kill('SIGKILL'))
}

/** Waits until the server answers, for at most 60 s (recovery after a crash); else says why not. */
async function ready(server: Server, url: string): Promise<string | undefined> {
  const until = performance.now() + 60_000
  for (let pause = 10; performance.now() < until; pause = Math.min(pause * 1.5, 200)) {
    if (!server.running()) return 'it ended at once'
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 })
    // A connection that breaks while it is being closed is of no interest.
    client.on('error', () => undefined)
    try {
      await client.connect()
      await client.end()
      return undefined
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? error.code : undefined
      // 57P03: cannot_connect_now, it is starting up.
      if (code !== 'ECONNREFUSED' && code !== '57P03') return `it can't be reached: ${error}`
    }
    await Promise.race([delay(pause), server.ended])
  }
  return 'it accepted no connection within 60 s'
}

/** `port` if nobody listens there on 127.0.0.1, for 0 one that is free. */
async function freePort(port: number): Promise<number> {
  const probe = createServer().listen(port, '127.0.0.1')
  try {
    await once(probe, 'listening')
  } catch (cause) {
    throw new Error(`port ${port} on 127.0.0.1 can't be had for PostgreSQL: is it taken?`, {
      cause,
    })
  }
  const address = probe.address()
  probe.close()
  await once(probe, 'close')
  if (address === null || typeof address === 'string') throw new Error('no TCP port')
  return address.port
}

function lastLines(dataDir: string): string {
  return readFileSync(join(dataDir, 'server.log'), 'utf8')
    .trimEnd()
    .split('\n')
    .slice(-8)
    .join('\n')
}
