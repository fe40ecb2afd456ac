import pino from 'pino'
import { afterAll, beforeAll } from 'vitest'
import { locateByFile } from '../../dev/fleet/addressMap.ts'
import {
  type FleetOptions,
  type RunningFleet,
  startFleet,
  startRealFleet,
} from '../../dev/fleet/fleet.ts'
import type { ClusterServer } from '../../dev/fleet/servers.ts'
import type { ApiServer } from '../../dev/kube/server.ts'
import type { RealApiServer } from '../../dev/kube-real/server.ts'
import { identifyLoopback } from '../../dev/start/identity.ts'
import { Fleet } from '../../src/clusters/fleet.ts'
import { Kubeconfig } from '../../src/clusters/kubeconfig.ts'
import { openStore, type Store } from '../../src/db/client.ts'
import { type EventLog, openEventLog } from '../../src/domain/events/log.ts'
import { recordEndpoints, recordVpcs } from '../../src/domain/inventory.ts'
import { registerCluster } from '../../src/domain/operators/clusters.ts'
import { type CreateAddressPoolInput, createAddressPool } from '../../src/domain/operators/pools.ts'
import { setProjectRelease } from '../../src/domain/operators/projects.ts'
import { createRegion } from '../../src/domain/operators/regions.ts'
import { Refusal } from '../../src/domain/refusals.ts'
import { globalId } from '../../src/schema/ids.ts'
import { startServer } from '../../src/server/server.ts'
import type { Limits } from '../../src/workers/limits.ts'
import { DirectProber } from '../../src/workers/probe/directProber.ts'
import { startWorkers, type Workers } from '../../src/workers/workers.ts'
import { type Api, apiAt } from './api.ts'
import { turn } from './clusters.ts'
import { useDatabase } from './database.ts'
import { type Gatekeeper, guardFleet } from './gatekeeper.ts'

export type Installation<Server extends ClusterServer = ApiServer> = {
  store: Store
  log: EventLog
  /** The clusters, their data planes and endpoints. */
  fleet: RunningFleet<Server>
  /** By project: `demo` and `other`. */
  api: Api
  other: Api
  /** Of operators, about all projects. */
  operators: Api
  /** The global id of a project's VPC. */
  vpc(project?: string): string
  /** Addresses of a project's endpoints in one cluster or region. */
  addresses(where: string, project?: string): string[]
  workers: Workers
  /** What stands between the workers and a cluster, where the installation is guarded. */
  gatekeeper(cluster: string): Gatekeeper
  /** Ends the workers (as when their process stops) and starts others. */
  restartWorkers(): Promise<void>
}

export type InstallationOptions = Omit<FleetOptions, 'dataDir'> & {
  pools?: CreateAddressPoolInput[]
  /**
   * false: nothing reconciles; the inventory is put in directly. A function: how else workers are
   * started, as processes of their own for example.
   */
  workers?: boolean | ((where: Whereabouts) => Workers)
  /** Smaller than in production. */
  limits?: Partial<Limits>
  /** The clock by which workers hold out backends that come and go. */
  now?: () => number
  /** Workers reach clusters through gatekeepers, which may answer for them. */
  guarded?: boolean
}

/** What a worker has to be told. */
export type Whereabouts = { databaseUrl: string; kubeconfig: string; addressMap: string }

const POOLS: CreateAddressPoolInput[] = [
  { name: 'east6', region: 'us-east-1', prefix: '2001:db8:1::/64', skipFirstAndLast: true },
  { name: 'west6', region: 'us-west-1', prefix: '2001:db8:2::/64', skipFirstAndLast: true },
  { name: 'east4', region: 'us-east-1', prefix: '198.51.100.0/24', skipFirstAndLast: true },
  { name: 'west4', region: 'us-west-1', prefix: '203.0.113.0/24', skipFirstAndLast: true },
]

/**
 * A whole installation for the tests of one file: a database, clusters with their data planes,
 * workers and the API over HTTP, all real, on free ports of this machine.
 */
export function useInstallation(options: InstallationOptions = {}): Installation {
  return use((url) =>
    startInstallation(url, options, async () => {
      const fleet = await startFleet(options)
      return { fleet, guard: options.guarded ? await guardFleet(fleet) : undefined }
    }),
  )
}

/**
 * The same with real API servers. `kubeconfig`: the file that workers are given, where it isn't the
 * administrator's.
 */
export function useRealInstallation(
  options: Omit<InstallationOptions, 'guarded'> & {
    kubeconfig?: (fleet: RunningFleet<RealApiServer>) => Promise<string>
  },
): Installation<RealApiServer> {
  let giveBack: (() => void) | undefined
  beforeAll(async () => {
    giveBack = await turn()
  })
  afterAll(() => giveBack?.())
  return use((url) =>
    startInstallation(url, options, async () => {
      const fleet = await startRealFleet(options)
      const kubeconfig = await options.kubeconfig?.(fleet)
      return { fleet, ...(kubeconfig === undefined ? {} : { kubeconfig }) }
    }),
  )
}

function use<Server extends ClusterServer>(
  start: (url: string) => Promise<Started<Server>>,
): Installation<Server> {
  const database = useDatabase()
  let running: Started<Server> | undefined
  beforeAll(async () => {
    running = await start(database.url)
  })
  afterAll(() => running?.close())
  const now = (): Installation<Server> => {
    if (running === undefined) throw new Error('the installation is there from beforeAll on')
    return running
  }
  return {
    get store() {
      return now().store
    },
    get log() {
      return now().log
    },
    get fleet() {
      return now().fleet
    },
    get api() {
      return now().api
    },
    get other() {
      return now().other
    },
    get operators() {
      return now().operators
    },
    get workers() {
      return now().workers
    },
    vpc: (project) => now().vpc(project),
    addresses: (where, project) => now().addresses(where, project),
    gatekeeper: (cluster) => now().gatekeeper(cluster),
    restartWorkers: () => now().restartWorkers(),
  }
}

type Started<Server extends ClusterServer> = Installation<Server> & { close(): Promise<void> }

async function startInstallation<Server extends ClusterServer>(
  url: string,
  options: InstallationOptions,
  startClusters: () => Promise<{
    fleet: RunningFleet<Server>
    guard?: Awaited<ReturnType<typeof guardFleet>> | undefined
    kubeconfig?: string
  }>,
): Promise<Started<Server>> {
  const logger = pino({ level: process.env['TEST_LOG_LEVEL'] ?? 'silent' })
  const store = openStore({ connectionString: url, maxConnections: 20 })
  const { fleet, guard, ...given } = await startClusters()
  await register(store, fleet, options.pools ?? POOLS)
  const file = given.kubeconfig ?? guard?.kubeconfig ?? fleet.kubeconfig
  const kubeconfig = await Kubeconfig.open(file, { onProblem: raise, pollMs: 0 })
  const clusters = new Fleet(kubeconfig, { onHandlerError: raise })
  const { addressMap } = fleet
  const elsewhere = typeof options.workers === 'function' ? options.workers : undefined
  const begin = () =>
    elsewhere?.({ databaseUrl: url, kubeconfig: file, addressMap }) ??
    startWorkers({
      store,
      fleet: clusters,
      log: logger,
      // Used where an operator says that a prober stands.
      prober: new DirectProber({ locate: locateByFile(addressMap) }),
      limits: options.limits ?? {},
      now: options.now ?? Date.now,
    })
  let workers: Workers | undefined
  if (options.workers ?? true) workers = begin()
  else await putInInventory(store, fleet)
  await inventoryComplete(store, fleet)
  const log = openEventLog(store)
  const projects = fleet.projects.map(({ name }) => name)
  const identify = identifyLoopback([...projects, 'unheard-of'])
  const server = await startServer({
    store,
    log,
    identify,
    logger,
    host: '127.0.0.1',
    port: 0,
    corsOrigins: [],
  })
  const vpcs = await store.prisma.vpc.findMany()
  return {
    store,
    log,
    fleet,
    api: apiAt(server.url, 'demo'),
    other: apiAt(server.url, 'other'),
    operators: apiAt(server.url, null),
    vpc(project = 'demo') {
      const vpc = vpcs.find((one) => one.project === project)
      if (vpc === undefined) throw new Error(`no VPC of ${project}`)
      return globalId('Vpc', vpc.id)
    },
    addresses: (where, project = 'demo') =>
      fleet.endpoints
        .filter((one) => one.project === project && [one.cluster, one.region].includes(where))
        .map(({ address }) => address),
    get workers() {
      if (workers === undefined) throw new Error('this installation has no workers')
      return workers
    },
    gatekeeper(cluster) {
      const gatekeeper = guard?.gatekeepers.get(cluster)
      if (gatekeeper === undefined) throw new Error(`nothing guards ${cluster}`)
      return gatekeeper
    },
    async restartWorkers() {
      await workers?.close()
      workers = begin()
      await workers.renew()
    },
    async close() {
      await server.close()
      log.close()
      await workers?.close()
      await clusters.close()
      kubeconfig.close()
      await guard?.close()
      await fleet.close()
      await store.close()
    },
  }
}

/** What operators would put in. */
async function register(
  store: Store,
  fleet: RunningFleet<ClusterServer>,
  pools: CreateAddressPoolInput[],
): Promise<void> {
  const layouts = [...fleet.clusters.values()].map(({ layout }) => layout)
  for (const code of new Set(layouts.map(({ region }) => region))) {
    done(await createRegion(store, { code, displayName: code.toUpperCase(), cityCode: 'IAD' }))
  }
  for (const { name, region, servesIPv4 } of layouts) {
    done(await registerCluster(store, { name, region, context: name, servesIPv4 }))
  }
  const regions = new Set(layouts.map(({ region }) => region))
  for (const pool of pools) if (regions.has(pool.region)) done(await createAddressPool(store, pool))
  for (const { name } of fleet.projects) {
    await setProjectRelease(store, { project: name, released: true })
  }
}

function done(answer: object): void {
  if (answer instanceof Refusal) throw new Error(answer.message)
}

/** Where no worker follows the clusters. */
async function putInInventory(store: Store, fleet: RunningFleet<ClusterServer>): Promise<void> {
  await recordVpcs(
    store,
    fleet.projects.map(({ name, vpcName, vpcId }) => ({
      ref: vpcId,
      name: vpcName,
      project: name,
    })),
  )
  for (const { id, name } of await store.prisma.cluster.findMany()) {
    const seen = fleet.get(name).endpoints.map((one) => ({
      attachmentUid: `${name}/${one.address}`,
      attachmentNamespace: one.attachment.namespace,
      attachmentName: one.attachment.name,
      attachmentRef: one.attachmentId,
      vpcRef: one.vpcId,
      address: one.address,
      node: one.node,
      egressKind: 'veth' as const,
    }))
    await recordEndpoints(
      store,
      { cluster: id, epoch: 0 },
      seen.map(({ attachmentUid }) => attachmentUid),
      seen,
    )
  }
}

/** Waits for the inventory of every cluster; bounded by the hook that starts the installation. */
async function inventoryComplete(store: Store, fleet: RunningFleet<ClusterServer>): Promise<void> {
  while ((await store.prisma.endpoint.count()) < fleet.endpoints.length) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** What can't be told to anybody fails the run. */
function raise(error: unknown): void {
  queueMicrotask(() => {
    throw error
  })
}
