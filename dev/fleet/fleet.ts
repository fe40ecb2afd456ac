import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ClusterContext } from '../../src/clusters/kubeconfig.ts'
import { Kubeconfig } from '../../src/clusters/kubeconfig.ts'
import { KubernetesCluster } from '../../src/clusters/kubernetes.ts'
import type { Dialect } from '../../src/rules/wanted.ts'
import { type DataPlane, startDataPlane } from '../dataplane/dataPlane.ts'
import type { Delays } from '../dataplane/gates.ts'
import { Writer } from '../dataplane/writer.ts'
import { type ApiServer, startApiServer } from '../kube/server.ts'
import { writeAddressMap } from './addressMap.ts'
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

export type FleetOptions = {
  /** Where contents survive, with `kubeconfig` and `endpoints.json`; absent: a directory that goes on close. */
  dataDir?: string
  /** Default: the demo's four. */
  clusters?: readonly ClusterLayout[]
  /** Default: `demo` and `other`. */
  projects?: readonly ProjectLayout[]
  /** Endpoints of each project in each cluster (2). */
  endpointsPerCluster?: number
  delays?: Delays
}

/** A running endpoint: its listener can be stopped and started. */
export type Endpoint = EndpointLayout & Pick<Listener, 'stop' | 'start'> & { listener: number }

export type RunningCluster = {
  layout: ClusterLayout
  server: ApiServer
  readonly dataPlane: DataPlane
  /** Has the cluster's rules in another dialect from now on, and perhaps the data plane with them. */
  upgrade(dialect: Dialect, steps?: ('schema' | 'data plane')[]): Promise<void>
  /** As an administrator, with the product's own client: for tests to look and to meddle. */
  cluster: KubernetesCluster
  /** Writes under another field manager, statuses too. */
  writer: Writer
  endpoints: Endpoint[]
}

export type RunningFleet = {
  /** The file; one context for each cluster, named as the cluster. */
  kubeconfig: string
  /** The file that maps endpoints' addresses to ports of 127.0.0.1. */
  addressMap: string
  clusters: ReadonlyMap<string, RunningCluster>
  /** A cluster that was asked for by name; throws where there is none. */
  get(name: string): RunningCluster
  endpoints: Endpoint[]
  /** The endpoints of a project, in one region where given. */
  endpointsOf(project: string, region?: string): Endpoint[]
  projects: readonly ProjectLayout[]
  close(): Promise<void>
}

const crdDirectory = fileURLToPath(new URL('../crds/', import.meta.url))

/** Starts clusters with an API server, a data plane and answering endpoints each, all in this process. */
export async function startFleet(options: FleetOptions = {}): Promise<RunningFleet> {
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
    const servers = await startServers(layouts, lasting, closers)
    const kubeconfig = join(directory, 'kubeconfig')
    await writeKubeconfig(kubeconfig, servers)
    const contexts = await Kubeconfig.open(kubeconfig, { onProblem: raise, pollMs: 0 })
    const running = await Promise.all(
      layouts.map((layout, index) =>
        startCluster({
          layout,
          server: found(servers, layout.name),
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
    const clusters = new Map(running.map((cluster) => [cluster.layout.name, cluster]))
    return {
      kubeconfig,
      addressMap,
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

async function startServers(
  layouts: readonly ClusterLayout[],
  lasting: string | undefined,
  closers: (() => Promise<void>)[],
): Promise<Map<string, ApiServer>> {
  const [crds, selectorCrds] = await Promise.all([readCrds(''), readCrds('selector/')])
  const started = await Promise.all(
    layouts.map(async ({ name, dialect }) => {
      const server = await startApiServer({
        // The later NetworkRule takes the place of today's.
        crds: dialect === 'selector' ? [...crds, ...selectorCrds] : crds,
        ...(lasting === undefined ? {} : { dataFile: join(lasting, 'clusters', `${name}.json`) }),
      })
      closers.push(() => server.close())
      return [name, server] as const
    }),
  )
  return new Map(started)
}

async function startCluster(options: {
  layout: ClusterLayout
  server: ApiServer
  context: ClusterContext
  projects: readonly ProjectLayout[]
  endpoints: EndpointLayout[]
  delays: Delays
  closers: (() => Promise<void>)[]
}): Promise<RunningCluster> {
  const { layout, server, context, closers } = options
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
      const { port, stop, start } = await startListener()
      closers.push(stop)
      return { ...endpoint, listener: port, stop, start }
    }),
  )
  return {
    layout,
    server,
    cluster,
    writer,
    endpoints,
    get dataPlane() {
      return dataPlane
    },
    async upgrade(dialect, steps = ['schema', 'data plane']) {
      if (steps.includes('schema')) {
        const crds = await readCrds(dialect === 'selector' ? 'selector/' : '')
        for (const crd of crds) server.storage.setCrd(crd)
      }
      if (!steps.includes('data plane')) return
      await dataPlane.close()
      dataPlane = await begin(dialect)
    },
  }
}

async function readCrds(subdirectory: string): Promise<string[]> {
  const directory = join(crdDirectory, subdirectory)
  const files = (await readdir(directory)).filter((name) => name.endsWith('.yaml')).sort()
  return Promise.all(files.map((name) => readFile(join(directory, name), 'utf8')))
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
