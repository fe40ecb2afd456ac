import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ClusterContext } from '../../src/clusters/kubeconfig.ts'
import { Kubeconfig } from '../../src/clusters/kubeconfig.ts'
import { KubernetesCluster } from '../../src/clusters/kubernetes.ts'
import type { Dialect } from '../../src/rules/wanted.ts'
import { type DataPlane, startDataPlane } from '../dataplane/dataPlane.ts'
import type { Delays } from '../dataplane/gates.ts'
import { Writer } from '../dataplane/writer.ts'
import type { ApiServer } from '../kube/server.ts'
import type { RealApiServer } from '../kube-real/server.ts'
import { writeAddressMap } from './addressMap.ts'
import { followBehaviours } from './behaviours.ts'
import { writeKubeconfig } from './kubeconfig.ts'
import {
  type ClusterLayout,
  DEMO_CLUSTERS,
  DEMO_PROJECTS,
  type EndpointLayout,
  endpointsOf,
  gatewaysOf,
  type ProjectLayout,
} from './layout.ts'
import { type Listener, startListener } from './listeners.ts'
import { seedCluster } from './seed.ts'
import {
  type ClusterServer,
  readCrds,
  type Started,
  type StartServer,
  startEmbedded,
  startReal,
} from './servers.ts'

export type FleetOptions = {
  /** Where contents survive, and the fleet's files are; absent: a directory that goes on close. */
  dataDir?: string
  /** Default: the demo's four. */
  clusters?: readonly ClusterLayout[]
  /** Default: `demo` and `other`. */
  projects?: readonly ProjectLayout[]
  /** Endpoints of each project in each cluster (2). */
  endpointsPerCluster?: number
  delays?: Delays
}

/** A running endpoint: its listener can be stopped and started, and behave otherwise. */
export type Endpoint = EndpointLayout & Omit<Listener, 'port'> & { listener: number }

export type RunningCluster<Server extends ClusterServer = ApiServer> = {
  layout: ClusterLayout
  server: Server
  readonly dataPlane: DataPlane
  /** Has the cluster's rules in another dialect from now on, and perhaps the data plane with them. */
  upgrade(dialect: Dialect, steps?: ('schema' | 'data plane')[]): Promise<void>
  /** As an administrator, with the product's own client: for tests to look and to meddle. */
  cluster: KubernetesCluster
  /** Writes under another field manager, statuses too. */
  writer: Writer
  endpoints: Endpoint[]
}

export type RunningFleet<Server extends ClusterServer = ApiServer> = {
  /** The file; one context for each cluster, named as the cluster. */
  kubeconfig: string
  /** The file that maps endpoints' addresses to ports of 127.0.0.1. */
  addressMap: string
  /** The file by which people switch how endpoints behave. */
  behaviours: string
  clusters: ReadonlyMap<string, RunningCluster<Server>>
  /** A cluster that was asked for by name; throws where there is none. */
  get(name: string): RunningCluster<Server>
  endpoints: Endpoint[]
  /** The endpoints of a project, in one region where given. */
  endpointsOf(project: string, region?: string): Endpoint[]
  projects: readonly ProjectLayout[]
  close(): Promise<void>
}

/** Starts clusters with an API server, a data plane and answering endpoints each, all in this process. */
export const startFleet = (options: FleetOptions = {}): Promise<RunningFleet> =>
  runFleet(options, startEmbedded)

/** The same with real API servers, which are processes of their own. */
export const startRealFleet = (options: FleetOptions = {}): Promise<RunningFleet<RealApiServer>> =>
  runFleet(options, startReal)

async function runFleet<Server extends ClusterServer>(
  options: FleetOptions,
  start: StartServer<Server>,
): Promise<RunningFleet<Server>> {
  const layouts = options.clusters ?? DEMO_CLUSTERS
  const projects = options.projects ?? DEMO_PROJECTS
  const lasting = options.dataDir
  const directory = lasting ?? (await mkdtemp(join(tmpdir(), 'fleet-')))
  await mkdir(join(directory, 'clusters'), { recursive: true })
  const closers: (() => Promise<void>)[] = []
  const close = async () => {
    for (const closer of closers.splice(0).reverse()) await closer()
    if (lasting === undefined) await rm(directory, { recursive: true, force: true })
  }
  try {
    const kept = lasting === undefined ? undefined : join(lasting, 'clusters')
    const servers = await startServers(layouts, start, kept, closers)
    const kubeconfig = join(directory, 'kubeconfig')
    const addresses = [...servers].map(([name, { server }]) => [name, server] as const)
    await writeKubeconfig(kubeconfig, new Map(addresses))
    const contexts = await Kubeconfig.open(kubeconfig, { onProblem: raise, pollMs: 0 })
    const running = await Promise.all(
      layouts.map((layout, index) =>
        startCluster({
          layout,
          started: found(servers, layout.name),
          context: usable(contexts.context(layout.name), layout.name),
          projects,
          endpoints: endpointsOf(layout, index + 1, projects, options.endpointsPerCluster ?? 2),
          delays: options.delays ?? {},
          closers,
        }),
      ),
    )
    contexts.close()
    const endpoints = running.flatMap((cluster) => cluster.endpoints)
    const addressMap = join(directory, 'endpoints.json')
    const ports = endpoints.map(({ address, listener }) => [address, listener] as const)
    await writeAddressMap(addressMap, new Map(ports))
    const behaviours = join(directory, 'behaviours.json')
    closers.push(await followBehaviours(behaviours, endpoints))
    const clusters = new Map(running.map((cluster) => [cluster.layout.name, cluster]))
    return {
      kubeconfig,
      addressMap,
      behaviours,
      clusters,
      get: (name) => found(clusters, name),
      endpoints,
      endpointsOf: (project, region) =>
        endpoints.filter(
          (one) => one.project === project && (region === undefined || one.region === region),
        ),
      projects,
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

async function startServers<Server extends ClusterServer>(
  layouts: readonly ClusterLayout[],
  start: StartServer<Server>,
  directory: string | undefined,
  closers: (() => Promise<void>)[],
): Promise<Map<string, Started<Server>>> {
  const [crds, selectorCrds] = await Promise.all([readCrds(''), readCrds('selector/')])
  const started = await Promise.all(
    layouts.map(async ({ name, dialect }) => {
      const one = await start({
        name,
        // The later NetworkRule takes the place of today's.
        crds: dialect === 'selector' ? [...crds, ...selectorCrds] : crds,
        directory,
      })
      closers.push(() => one.server.close())
      return [name, one] as const
    }),
  )
  return new Map(started)
}

async function startCluster<Server extends ClusterServer>(options: {
  layout: ClusterLayout
  started: Started<Server>
  context: ClusterContext
  projects: readonly ProjectLayout[]
  endpoints: EndpointLayout[]
  delays: Delays
  closers: (() => Promise<void>)[]
}): Promise<RunningCluster<Server>> {
  const { layout, started, context, closers } = options
  const writer = new Writer(context, 'fleet')
  closers.push(() => writer.close())
  await seedCluster(writer, options.projects, options.endpoints)
  const cluster = new KubernetesCluster(layout.name, context, { onHandlerError: raise })
  closers.push(() => cluster.close())
  const begin = (dialect: Dialect) =>
    startDataPlane({
      cluster,
      context,
      gateways: gatewaysOf(layout),
      servesIPv4: layout.servesIPv4,
      dialect,
      delays: options.delays,
    })
  let dataPlane = await begin(layout.dialect ?? 'backends')
  closers.push(() => dataPlane.close())
  const endpoints = await Promise.all(
    options.endpoints.map(async (endpoint) => {
      const { port, ...listener } = await startListener()
      closers.push(listener.stop)
      return { ...endpoint, ...listener, listener: port }
    }),
  )
  return {
    layout,
    server: started.server,
    cluster,
    writer,
    endpoints,
    get dataPlane() {
      return dataPlane
    },
    async upgrade(dialect, steps = ['schema', 'data plane']) {
      if (steps.includes('schema')) {
        await started.setCrds(await readCrds(dialect === 'selector' ? 'selector/' : ''))
      }
      if (!steps.includes('data plane')) return
      await dataPlane.close()
      dataPlane = await begin(dialect)
    },
  }
}

function usable(context: ClusterContext | undefined, name: string): ClusterContext {
  if (context === undefined) throw new Error(`the kubeconfig has no context ${name}`)
  return context
}

function found<T>(things: ReadonlyMap<string, T>, name: string): T {
  const thing = things.get(name)
  if (thing === undefined) throw new Error(`the fleet has no cluster ${name}`)
  return thing
}

/** What can't be told to anybody ends the process. */
function raise(error: unknown): void {
  queueMicrotask(() => {
    throw error
  })
}
