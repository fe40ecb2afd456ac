// npm start: everything on one machine, in one terminal.
import { once } from 'node:events'
import { createServer } from 'node:net'
import { relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import pino from 'pino'
import { ConfigurationError, type Environment, readEnvironment } from '../src/config/environment.ts'
import { openStore, type Store } from '../src/db/client.ts'
import { DatabaseUnreachable, migrate } from '../src/db/migrate.ts'
import { globalId } from '../src/schema/ids.ts'
import { runApi } from '../src/server/main.ts'
import { type FleetOptions, type RunningFleet, startFleet, startRealFleet } from './fleet/fleet.ts'
import type { ClusterServer } from './fleet/servers.ts'
import { DataDamaged } from './kube/datafile.ts'
import { haveRealApiServer } from './kube-real/server.ts'
import { startPostgres } from './postgres.ts'
import {
  type DataDirectory,
  holdData,
  openDataDirectory,
  removeData,
} from './start/dataDirectory.ts'
import { identifyEither, identifyLoopback } from './start/identity.ts'
import { createIssuer, demoTokens } from './start/issuer.ts'
import { metricsPorts } from './start/metricsPorts.ts'
import { readOptions, USAGE } from './start/options.ts'
import { seedStore } from './start/seedStore.ts'
import { onSignals, Shutdown } from './start/shutdown.ts'
import { welcome } from './start/welcome.ts'
import { startWorkerProcess, type WorkerProcess } from './start/workerProcess.ts'

/** What isn't a fault of the program is said in one line. */
class CannotStart extends Error {
  override name = 'CannotStart'
}

type DemoFleet = RunningFleet<ClusterServer>

/** Milliseconds: long enough to see a status change, short enough not to wait for it. */
const DELAYS = { accept: 150, advertise: 250, bind: 200, teardown: 250 }
const DATA = fileURLToPath(new URL('../.data', import.meta.url))
const DATABASE = 'network_load_balancers'

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
  if (options.kube === 'real' && !haveRealApiServer()) {
    throw new CannotStart('--kube real needs kube-apiserver and etcd: npm run kube:build')
  }
  const environment = readEnvironment({ LOG_LEVEL: 'warn', ...process.env })
  const { port, host = '127.0.0.1' } = environment
  await requireFreePort(port, host)
  const directory = await openDataDirectory(resolve(options.data ?? DATA))
  hold(directory)
  if (options.fresh) await beginAnew(environment, directory)
  const { store, url, fleet } = await startStores(environment, directory, options.kube)
  const { worker, api, metrics, tokens } = await startProcesses(environment, { url, fleet, host })
  await worker.ready
  if (shutdown.begun) return
  const vpcId = await vpcOf(store, 'demo')
  const backends = fleet.endpointsOf('demo', 'us-east-1').filter(({ node }) => node.endsWith('-1'))
  console.log(
    welcome({
      url: api,
      project: 'demo',
      vpcId: globalId('Vpc', vpcId),
      region: 'us-east-1',
      backends: backends.map(({ address }) => address),
      tokens,
      metrics,
      dataDir: `${relative(process.cwd(), directory.root) || '.'}/`,
      seconds: (performance.now() - begun) / 1000,
    }),
  )
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

/** The database and the clusters, at the same time; the database is the last to end. */
async function startStores(
  environment: Environment,
  directory: DataDirectory,
  kube: 'embedded' | 'real',
): Promise<{ store: Store; url: string; fleet: DemoFleet }> {
  let closeDatabase: (() => Promise<void>) | undefined
  let closeFleet: (() => Promise<void>) | undefined
  shutdown.add('PostgreSQL', 5_000, async () => closeDatabase?.())
  shutdown.add('the clusters', 1_000, async () => closeFleet?.())
  const database = async () => {
    let url = environment.databaseUrl
    if (url === undefined) {
      const postgres = await startPostgres({ dataDir: directory.postgres }).catch(sayWhy)
      closeDatabase = () => postgres.stop()
      void postgres.ended.then(() => failed('PostgreSQL ended'))
      url = await postgres.ensureDatabase(DATABASE)
    }
    await migrate(url)
    return url
  }
  const clusters = async () => {
    const start: (options: FleetOptions) => Promise<DemoFleet> =
      kube === 'real' ? startRealFleet : startFleet
    const fleet = await start({ dataDir: directory.root, delays: DELAYS })
    closeFleet = fleet.close
    return fleet
  }
  // Both have to have settled before anything is ended: what still starts can't be stopped.
  const [url, fleet] = await Promise.allSettled([database(), clusters()])
  if (url.status === 'rejected') throw url.reason
  if (fleet.status === 'rejected') throw fleet.reason
  const log = pino({ name: 'store', level: environment.logLevel })
  const store = openStore({
    connectionString: url.value,
    onError: (error) => log.warn({ err: error }, 'an idle connection to the database broke'),
  })
  shutdown.add('the store', 500, () => store.close())
  await seedStore(
    store,
    [...fleet.value.clusters.values()].map(({ layout }) => layout),
    fleet.value.projects,
  )
  return { store, url: url.value, fleet: fleet.value }
}

async function startProcesses(
  environment: Environment,
  given: { url: string; fleet: DemoFleet; host: string },
): Promise<{
  worker: WorkerProcess
  api: string
  metrics: { api: string; worker: string } | undefined
  tokens: ReadonlyMap<string, string>
}> {
  const { url, fleet, host } = given
  const ports = await metricsPorts(environment.metricsPort, host)
  const worker = startWorkerProcess([fleet.addressMap], {
    ...process.env,
    HOST: host,
    METRICS_PORT: String(ports.worker),
    LOG_LEVEL: environment.logLevel,
    DATABASE_URL: url,
    KUBECONFIG: fleet.kubeconfig,
  })
  shutdown.add('the worker', 1_500, () => worker.stop(1_200))
  void worker.givenUp.then((how) => failed(`the worker keeps ending (${how})`))
  const projects = fleet.projects.map(({ name }) => name)
  const issuer = await createIssuer()
  const identify = identifyEither(identifyLoopback(projects), issuer.identify)
  const settings = { ...environment, host, databaseUrl: url, metricsPort: ports.api }
  const api = await runApi(settings, { identify })
  // Clients see their streams end before anything they are about does.
  shutdown.add('the API', 1_500, () => api.close())
  const { diagnostics } = api
  const metrics =
    diagnostics === undefined
      ? undefined
      : { api: diagnostics, worker: `http://${host}:${ports.worker}` }
  return { worker, api: api.url, metrics, tokens: await demoTokens(issuer, projects) }
}

function failed(what: string): void {
  if (shutdown.begun) return
  console.error(`${what}; stopping.`)
  void finish(1)
}

/** The id of a project's VPC, which a worker finds in the clusters. */
async function vpcOf(store: Store, project: string): Promise<string> {
  for (let looks = 0; looks < 100; looks += 1) {
    const vpc = await store.prisma.vpc.findFirst({ where: { project } })
    if (vpc !== null) return vpc.id
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new CannotStart('no worker found the VPCs of the clusters within 10 s')
}

/** What keeps PostgreSQL from starting is said in words for whoever runs it. */
function sayWhy(error: unknown): never {
  throw new CannotStart(error instanceof Error ? error.message : String(error), { cause: error })
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
  if (error instanceof DatabaseUnreachable) return `the database can't be reached: ${error.message}`
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
