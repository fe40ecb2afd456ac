// npm start: everything on one machine, in one terminal.
import { once } from 'node:events'
import { createServer } from 'node:net'
import { relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ConfigurationError, type Environment, readEnvironment } from '../src/config/environment.ts'
import { DataDamaged } from './kube/datafile.ts'
import { CannotStart } from './start/cannotStart.ts'
import {
  type DataDirectory,
  holdData,
  openDataDirectory,
  removeData,
} from './start/dataDirectory.ts'
import { readOptions, USAGE } from './start/options.ts'
import { onSignals, Shutdown } from './start/shutdown.ts'

const DATA = fileURLToPath(new URL('../.data', import.meta.url))

const shutdown = new Shutdown()
const begun = performance.now()
onSignals(
  () => {
    console.log('Stopping …')
    void finish(0)
  },
  // The worker and PostgreSQL end by themselves when this process is gone.
  () => process.exit(130),
)
try {
  await start(process.argv.slice(2))
} catch (error) {
  if (!shutdown.begun) console.error(explain(error))
  await finish(1)
}

/** Ends everything, then this process; the first reason to do so gives the exit code. */
async function finish(code: number): Promise<never> {
  process.exitCode ??= code
  await shutdown.end()
  process.exit()
}

async function start(args: string[]): Promise<void> {
  const options = readOptions(args)
  if (typeof options === 'string') throw new CannotStart(`${options}; --help says what there is`)
  if (options.help) {
    console.log(USAGE)
    return finish(0)
  }
  const environment = readEnvironment({ LOG_LEVEL: 'warn', ...process.env })
  const { port, host = '127.0.0.1' } = environment
  await requireFreePort(port, host)
  const directory = await openDataDirectory(resolve(options.data ?? DATA))
  hold(directory)
  // Loaded when it is clear that there is something to start: that takes a second.
  const { requireServers, startDemo } = await import('./start/demo.ts')
  const { welcome } = await import('./start/welcome.ts')
  const { kube } = options
  requireServers(kube)
  if (options.fresh) await beginAnew(environment, directory)
  const started = await startDemo({ environment, directory, kube, host, shutdown, failed })
  if (started === undefined) return
  console.log(welcome({ ...started, seconds: (performance.now() - begun) / 1000 }))
}

function hold(directory: DataDirectory): void {
  const held = holdData(directory)
  if (typeof held === 'function') {
    process.once('exit', held)
    return
  }
  const { heldBy } = held
  const name = relative(process.cwd(), directory.root) || '.'
  throw new CannotStart(
    `another npm start (process ${heldBy}) uses ${name}: stop it, or take another directory: npm start -- --data DIR`,
  )
}

async function beginAnew({ databaseUrl }: Environment, directory: DataDirectory): Promise<void> {
  if (databaseUrl !== undefined) {
    throw new CannotStart('--fresh leaves DATABASE_URL alone: empty that database yourself')
  }
  await removeData(directory)
}

function failed(what: string): void {
  if (shutdown.begun) return
  console.error(`${what}; stopping.`)
  void finish(1)
}

/** Told early, before anything else is started. */
async function requireFreePort(port: number, host: string): Promise<void> {
  const probe = createServer()
  try {
    await once(probe.listen(port, host), 'listening')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'EADDRINUSE') throw new CannotStart(portTaken(port))
    throw new CannotStart(`${host}:${port} can't be listened on (${code}): set HOST and PORT`)
  }
  probe.close()
  await once(probe, 'close')
}

function portTaken(port: number): string {
  return `port ${port} is taken: stop what listens there, or choose another one: PORT=${port + 1} npm start`
}

/** One line for what a person can put right; all there is for what they can't. */
function explain(error: unknown): string {
  if (error instanceof CannotStart || error instanceof ConfigurationError) return error.message
  if (error instanceof DataDamaged) return error.message
  // What the file system refuses is said with the path that it is about.
  if (isSystemError(error)) return `${error.path}: ${error.message}`
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

function isSystemError(error: unknown): error is NodeJS.ErrnoException & { path: string } {
  return (
    error instanceof Error &&
    'syscall' in error &&
    'path' in error &&
    typeof error.path === 'string'
  )
}
