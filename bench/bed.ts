import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type pg from 'pg'
import { Pool } from 'undici'
import { startPostgres } from '../dev/postgres.ts'
import { openStore, type Store } from '../src/db/client.ts'
import { migrate } from '../src/db/migrate.ts'
import { recordEndpoints, recordVpcs } from '../src/domain/inventory.ts'
import { registerCluster } from '../src/domain/operators/clusters.ts'
import { createAddressPool } from '../src/domain/operators/pools.ts'
import { setProjectRelease, setQuota } from '../src/domain/operators/projects.ts'
import { createRegion } from '../src/domain/operators/regions.ts'
import { globalId } from '../src/schema/ids.ts'

/** As many projects as clients: creates of one project queue on its row. */
export const CLIENTS = 32

export type Tenant = { project: string; vpc: string; vpcId: string; addresses: string[] }

/** A process that was started from a file of bench/ and answers HTTP. */
export type Started = { url: string; pid: number; http: Pool }

/** A store with tenants, and the API in a process of its own, as in production. */
export type Bed = {
  store: Store
  /** Connections of the load generator's own: as many as clients. */
  pool: pg.Pool
  url: string
  tenants: Tenant[]
  api: Started
  /** A GraphQL call by POST; answers the body. `to`: another API process than the bed's. */
  call(client: number, body: string, to?: Started): Promise<string>
  /** Starts another process from a file of bench/ that prints its URL; ended with the bed. */
  start(file: string, ...args: string[]): Promise<Started>
  /** One that answers nothing. */
  run(file: string, ...args: string[]): Promise<{ pid: number; end(): Promise<void> }>
  /** Another database of the same server, with the same tenants. */
  another(name: string): Promise<Pick<Bed, 'store' | 'pool' | 'url' | 'tenants' | 'api'>>
  close(): Promise<void>
}

/** How long (ms) a statement may take that puts in a hundred thousand rows. */
const SEEDING = 600_000

export async function startBed(): Promise<Bed> {
  const directory = await mkdtemp(join(tmpdir(), 'bench-'))
  const postgres = await startPostgres({
    dataDir: join(directory, 'postgres'),
    // Nobody waits for the disk, ours as little as the floor: it is what differs most between machines.
    settings: { max_connections: 300, shared_buffers: '512MB', synchronous_commit: 'off' },
  })
  const children = new Children()
  const closers: (() => Promise<unknown>)[] = []
  const database = async (name: string) => {
    const url = await postgres.ensureDatabase(name)
    await migrate(url)
    const store = openStore({ connectionString: url, maxConnections: 4, deadline: SEEDING })
    // Prepared statements are planned once, as the product's are.
    const { pool } = openStore({
      connectionString: url,
      maxConnections: CLIENTS,
      deadline: SEEDING,
    })
    closers.push(
      () => pool.end(),
      () => store.close(),
    )
    const tenants = await seed(store)
    return { url, store, pool, tenants, api: await children.start('./server.ts', url) }
  }
  const first = await database('bench')
  return {
    ...first,
    start: (file, ...args) => children.start(file, ...args),
    run: (file, ...args) => children.run(file, ...args),
    another: database,
    async call(client, body, to = first.api) {
      const project = first.tenants[client % CLIENTS]?.project ?? ''
      const answer = await to.http.request({
        method: 'POST',
        path: `/projects/${project}/graphql`,
        headers: { 'content-type': 'application/json', accept: 'application/json' },
        body,
      })
      return answer.body.text()
    },
    async close() {
      // The clients of PostgreSQL end before it does.
      await children.end()
      await Promise.all(closers.map((close) => close()))
      await postgres.stop()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/** For the processes under measurement, `--cpu-prof` for example. */
export const NODE_FLAGS = process.env['BENCH_NODE_FLAGS']?.split(' ') ?? []

/** Processes of files of bench/, each of which prints a line when it is ready. */
export class Children {
  readonly #running: ChildProcess[] = []
  readonly #pools: Pool[] = []

  /** One that answers HTTP. */
  async start(file: string, ...args: string[]): Promise<Started> {
    const { line: url, pid } = await this.run(file, ...args)
    const http = new Pool(url, { connections: CLIENTS, pipelining: 1 })
    this.#pools.push(http)
    return { url, pid, http }
  }

  /** Resolves when it has printed its first line. */
  async run(file: string, ...args: string[]) {
    const path = fileURLToPath(new URL(file, import.meta.url))
    const child = spawn(process.execPath, [...NODE_FLAGS, path, ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    this.#running.push(child)
    const [line] = await once(child.stdout, 'data')
    return { line: String(line).trim(), pid: child.pid ?? 0, end: () => end(child) }
  }

  async end(): Promise<void> {
    await Promise.all(this.#pools.map((one) => one.destroy()))
    await Promise.all(this.#running.map(end))
  }
}

async function end(child: ChildProcess): Promise<void> {
  child.kill('SIGTERM')
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
}

const REGION = 'us-east-1'
export const BENCH_REGION = REGION

async function seed(store: Store): Promise<Tenant[]> {
  await createRegion(store, { code: REGION, displayName: 'East', cityCode: 'IAD' })
  await createAddressPool(store, { name: 'bench', region: REGION, prefix: '2001:db8::/64' })
  for (const name of ['a', 'b'])
    await registerCluster(store, { name, region: REGION, context: name })
  const clusters = await store.prisma.cluster.findMany()
  const tenants: Tenant[] = []
  for (let index = 0; index < CLIENTS; index += 1) {
    const project = `bench-${index}`
    const ref = `v${index}`
    await recordVpcs(store, [{ ref, name: 'vpc', project }])
    await setProjectRelease(store, { project, released: true })
    for (const resource of ['loadbalancers', 'rulespervpc']) {
      await setQuota(store, {
        project,
        resource: `networking.datumapis.com/${resource}`,
        region: REGION,
        limit: null,
      })
    }
    const addresses: string[] = []
    for (const [place, cluster] of clusters.entries()) {
      const seen = Array.from({ length: 5 }, (_, number) => ({
        attachmentUid: `${ref}-${place}-${number}`,
        attachmentNamespace: project,
        attachmentName: `web-${number}`,
        attachmentRef: `${number}`,
        vpcRef: ref,
        address: `fd00:${index}:${place}::${number + 1}`,
        node: `node-${number}`,
        egressKind: 'veth' as const,
      }))
      addresses.push(...seen.map(({ address }) => address))
      await recordEndpoints(
        store,
        { cluster: cluster.id, epoch: 0 },
        seen.map(({ attachmentUid }) => attachmentUid),
        seen,
      )
    }
    const { id } = await store.prisma.vpc.findUniqueOrThrow({ where: { ref } })
    tenants.push({ project, vpc: id, vpcId: globalId('Vpc', id), addresses })
  }
  return tenants
}
