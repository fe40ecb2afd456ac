import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Writer } from '../dev/dataplane/writer.ts'
import { writeKubeconfig } from '../dev/fleet/kubeconfig.ts'
import { endpointsOf } from '../dev/fleet/layout.ts'
import { seedCluster } from '../dev/fleet/seed.ts'
import { readCrds, startReal } from '../dev/fleet/servers.ts'
import type { RealApiServer } from '../dev/kube-real/server.ts'
import { startPostgres } from '../dev/postgres.ts'
import { Kubeconfig } from '../src/clusters/kubeconfig.ts'
import { KubernetesCluster } from '../src/clusters/kubernetes.ts'
import { openStore, type Store } from '../src/db/client.ts'
import { migrate } from '../src/db/migrate.ts'
import { createLoadBalancer } from '../src/domain/loadBalancers/create.ts'
import { registerCluster } from '../src/domain/operators/clusters.ts'
import { createAddressPool } from '../src/domain/operators/pools.ts'
import { setProjectRelease, setQuota } from '../src/domain/operators/projects.ts'
import { createRegion } from '../src/domain/operators/regions.ts'

import { NODE_FLAGS } from './bed.ts'

const REGION = 'us-east-1'
const PROJECT = { name: 'demo', vpcName: 'demo-vpc', vpcId: '5dEmo1', network: 'fd20:1::' }
const NAMES = ['east-a', 'east-b']

export type RealCluster = {
  name: string
  server: RealApiServer
  /** As an administrator, by the product's own client. */
  cluster: KubernetesCluster
  writer: Writer
}

/** A worker's process. While it is paused, for less than its lease lasts, it does nothing at all. */
export type BenchWorker = { pause(): void; goOn(): void; end(): Promise<void> }

/** Two real API servers without a data plane, and a store whose load balancers may be in both. */
export type Clusters = {
  store: Store
  each: RealCluster[]
  /** Makes a load balancer with a backend in each cluster; answers its id. Its port is its number. */
  create(number: number): Promise<string>
  /** A worker's process; resolves when it serves both clusters. */
  startWorker(): Promise<BenchWorker>
  /** Resolves when everything that was asked is applied; looks every 20 ms. */
  applied(): Promise<void>
  /** How many placements wait to be applied. */
  waiting(): Promise<number>
  /** Whether any does, which is cheaper to know. */
  isBehind(): Promise<boolean>
  close(): Promise<void>
}

export async function startClusters(): Promise<Clusters> {
  const directory = await mkdtemp(join(tmpdir(), 'bench-clusters-'))
  const closers: (() => Promise<unknown>)[] = [
    () => rm(directory, { recursive: true, force: true }),
  ]
  const crds = await readCrds('')
  const started = await Promise.all(
    NAMES.map(async (name) => ({
      name,
      ...(await startReal({ name, crds, directory: undefined })),
    })),
  )
  for (const { server } of started) closers.push(() => server.close())
  const kubeconfig = join(directory, 'kubeconfig')
  await writeKubeconfig(kubeconfig, new Map(started.map(({ name, server }) => [name, server])))
  const contexts = await Kubeconfig.open(kubeconfig, { onProblem: console.error, pollMs: 0 })
  contexts.close()
  const each: RealCluster[] = []
  let endpoints = 0
  for (const [index, { name, server }] of started.entries()) {
    const context = contexts.context(name)
    if (context === undefined) throw new Error(`the kubeconfig has no context ${name}`)
    const writer = new Writer(context, 'bench')
    const cluster = new KubernetesCluster(name, context, { onHandlerError: console.error })
    closers.push(
      () => writer.close(),
      () => cluster.close(),
    )
    const layout = { name, region: REGION, servesIPv4: false }
    const seeded = endpointsOf(layout, index + 1, [PROJECT], 1)
    await seedCluster(writer, [PROJECT], seeded)
    endpoints += seeded.length
    each.push({ name, server, cluster, writer })
  }
  const postgres = await startPostgres({
    dataDir: join(directory, 'postgres'),
    settings: { synchronous_commit: 'off' },
  })
  closers.push(() => postgres.stop())
  const url = await postgres.ensureDatabase('bench')
  await migrate(url)
  const store = openStore({ connectionString: url, maxConnections: 8 })
  closers.push(() => store.close())
  await furnish(store)
  const workers = new Set<ChildProcess>()
  const end = async (worker: ChildProcess) => {
    worker.kill('SIGTERM')
    if (worker.exitCode === null) await once(worker, 'exit')
    workers.delete(worker)
  }
  return {
    store,
    each,
    create: (number) => create(store, number),
    async startWorker() {
      const worker = spawn(
        process.execPath,
        [...NODE_FLAGS, script, join(directory, 'no-addresses.json')],
        {
          env: { ...process.env, DATABASE_URL: url, KUBECONFIG: kubeconfig, METRICS_PORT: '0' },
          stdio: ['ignore', 'pipe', 'inherit'],
        },
      )
      workers.add(worker)
      await serving(worker)
      await taken(store, endpoints)
      return {
        pause: () => void worker.kill('SIGSTOP'),
        goOn: () => void worker.kill('SIGCONT'),
        end: () => end(worker),
      }
    },
    applied: () => applied(store),
    waiting: () => waiting(store),
    isBehind: () => isBehind(store),
    async close() {
      await Promise.all([...workers].map(end))
      for (const close of closers.reverse()) await close()
    },
  }
}

const script = fileURLToPath(new URL('../dev/worker.ts', import.meta.url))

/** Reads the worker's log to its end, so that it never waits for us; resolves when it serves all. */
function serving({ stdout }: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (stdout === null) return
    let served = 0
    createInterface({ input: stdout }).on('line', (line) => {
      if (line.includes('the cluster is served')) served += 1
      if (served === NAMES.length) resolve()
    })
  })
}

/** Resolves when the inventory has that many endpoints: a worker that serves takes them in right after. */
async function taken(store: Store, endpoints: number): Promise<void> {
  while ((await store.prisma.endpoint.count()) < endpoints) await delay(20)
}

async function furnish(store: Store): Promise<void> {
  await createRegion(store, { code: REGION, displayName: 'East', cityCode: 'IAD' })
  await createAddressPool(store, { name: 'bench', region: REGION, prefix: '2001:db8::/64' })
  for (const name of NAMES) await registerCluster(store, { name, region: REGION, context: name })
  await setProjectRelease(store, { project: PROJECT.name, released: true })
  for (const resource of ['loadbalancers', 'rulespervpc']) {
    await setQuota(store, {
      project: PROJECT.name,
      resource: `networking.datumapis.com/${resource}`,
      region: REGION,
      limit: null,
    })
  }
}

async function create(store: Store, number: number): Promise<string> {
  const vpc = await store.prisma.vpc.findFirstOrThrow()
  const made = await createLoadBalancer(
    store,
    { project: PROJECT.name, actor: { kind: 'USER', name: 'bench' } },
    {
      name: `lb-${number}`,
      vpc: vpc.id,
      region: REGION,
      protocol: { tcp: { port: number } },
      backends: ['fd20:1:0:1::1', 'fd20:1:0:2::1'].map((address) => ({ address })),
    },
  )
  if (!('loadBalancer' in made)) throw new Error(JSON.stringify(made))
  return made.loadBalancer.id
}

async function applied(store: Store): Promise<void> {
  while (await isBehind(store)) await delay(20)
}

/** By the index of what is due: to go through all placements ten times a second took a tenth of what PostgreSQL did. */
async function isBehind({ pool }: Store): Promise<boolean> {
  const { rows } = await pool.query({
    name: 'read-one-waiting',
    text: 'SELECT FROM placement WHERE due IS NOT NULL ORDER BY cluster_id, due LIMIT 1',
  })
  return rows.length > 0
}

async function waiting(store: Store): Promise<number> {
  const { rows } = await store.pool.query<{ waiting: number }>({
    name: 'count-waiting',
    text: 'SELECT count(*) AS waiting FROM placement WHERE due IS NOT NULL',
  })
  const [row] = rows
  if (row === undefined) throw new Error('a count has one row')
  return row.waiting
}

/** How many writes of our objects a server has answered so far, by its audit log. */
export async function writesIn({ auditLog }: RealApiServer): Promise<number> {
  const lines = (await readFile(auditLog, 'utf8')).split('\n')
  return lines.filter(
    (line) =>
      /"verb":"(?:create|update|patch|delete)"/.test(line) &&
      line.includes('"apiGroup":"network.datumapis.com"'),
  ).length
}
