import { relative } from 'node:path'
import pino from 'pino'
import type { Environment } from '../../src/config/environment.ts'
import { openStore, type Store } from '../../src/db/client.ts'
import { CannotMigrate, DatabaseUnreachable, migrate } from '../../src/db/migrate.ts'
import { globalId } from '../../src/schema/ids.ts'
import { runApi } from '../../src/server/main.ts'
import { type FleetOptions, type RunningFleet, startFleet, startRealFleet } from '../fleet/fleet.ts'
import type { ClusterServer } from '../fleet/servers.ts'
import { haveRealApiServer } from '../kube-real/server.ts'
import { startPostgres } from '../postgres.ts'
import { CannotStart } from './cannotStart.ts'
import type { DataDirectory } from './dataDirectory.ts'
import { identifyEither, identifyLoopback } from './identity.ts'
import { createIssuer, demoTokens } from './issuer.ts'
import { metricsPorts } from './metricsPorts.ts'
import { seedStore } from './seedStore.ts'
import type { Shutdown } from './shutdown.ts'
import type { welcome } from './welcome.ts'
import { startWorkerProcess, type WorkerProcess } from './workerProcess.ts'

type DemoFleet = RunningFleet<ClusterServer>

/** Milliseconds: long enough to see a status change, short enough not to wait for it. */
const DELAYS = { accept: 150, advertise: 250, bind: 200, teardown: 250 }
export const DATABASE = 'network_load_balancers'

export type DemoOptions = {
  environment: Environment
  directory: DataDirectory
  kube: 'embedded' | 'real'
  host: string
  /** What is started is ended by it. */
  shutdown: Shutdown
  /** Something ended that should not have. */
  failed: (what: string) => void
}

/** Before anything is removed or started: whether the API servers that are asked for are there. */
export function requireServers(kube: DemoOptions['kube']): void {
  if (kube === 'real' && !haveRealApiServer()) {
    throw new CannotStart('--kube real needs kube-apiserver and etcd: npm run kube:build')
  }
}

/** Starts everything, and answers what to tell about it but for how long it took; undefined: it is ended already. */
export async function startDemo(
  options: DemoOptions,
): Promise<Omit<Parameters<typeof welcome>[0], 'seconds'> | undefined> {
  const { directory, shutdown } = options
  const { store, url, fleet } = await startStores(options)
  const { worker, api, metrics, tokens } = await startProcesses(options, { url, fleet })
  await worker.ready
  if (shutdown.begun) return undefined
  const vpcId = await vpcOf(store, 'demo')
  const backends = fleet.endpointsOf('demo', 'us-east-1').filter(({ node }) => node.endsWith('-1'))
  return {
    url: api,
    project: 'demo',
    vpcId: globalId('Vpc', vpcId),
    region: 'us-east-1',
    backends: backends.map(({ address }) => address),
    tokens,
    metrics,
    dataDir: `${fromHere(directory.root)}/`,
    kubeconfig: fromHere(fleet.kubeconfig),
    cluster: backends[0]?.cluster ?? '',
  }
}

/** The database and the clusters, at the same time; the database is the last to end. */
async function startStores({
  environment,
  directory,
  kube,
  shutdown,
  failed,
}: DemoOptions): Promise<{ store: Store; url: string; fleet: DemoFleet }> {
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
    await migrate(url).catch((error: unknown) => sayUnmigrated(error, environment, directory))
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
  { environment, host, shutdown, failed }: DemoOptions,
  { url, fleet }: { url: string; fleet: DemoFleet },
): Promise<{
  worker: WorkerProcess
  api: string
  metrics: { api: string; worker: string } | undefined
  tokens: ReadonlyMap<string, string>
}> {
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

const fromHere = (path: string): string => relative(process.cwd(), path) || '.'

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

function sayUnmigrated(
  error: unknown,
  { databaseUrl }: Environment,
  { root }: DataDirectory,
): never {
  if (error instanceof DatabaseUnreachable) {
    throw new CannotStart(`the database can't be reached: ${error.message}`, { cause: error })
  }
  if (!(error instanceof CannotMigrate)) throw error
  throw new CannotStart(
    databaseUrl === undefined
      ? `the data in ${fromHere(root)} are of another version (${error.how}); to lose them and begin anew: npm start -- --fresh`
      : `DATABASE_URL: ${error.message}`,
    { cause: error },
  )
}
