import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
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

/** A store with tenants, and the API in a process of its own, as in production. */
export type Bed = {
  store: Store
  /** Connections of the load generator's own: as many as clients. */
  pool: pg.Pool
  url: string
  tenants: Tenant[]
  /** A GraphQL call by POST; answers the body. */
  call(client: number, body: string): Promise<string>
  /** Starts another process from a file of bench/ that prints its URL; ended with the bed. */
  start(file: string, ...args: string[]): Promise<string>
  http(url: string): Pool
  close(): Promise<void>
}

export async function startBed(): Promise<Bed> {
  const directory = await mkdtemp(join(tmpdir(), 'bench-'))
  const postgres = await startPostgres({
    dataDir: join(directory, 'postgres'),
    // Nobody waits for the disk, ours as little as the floor: it is what differs most between machines.
    settings: { max_connections: 200, shared_buffers: '256MB', synchronous_commit: 'off' },
  })
  const url = await postgres.ensureDatabase('bench')
  await migrate(url)
  const store = openStore({ connectionString: url, maxConnections: 4 })
  const tenants = await seed(store)
  const pool = new pg.Pool({ connectionString: url, max: CLIENTS })
  pool.on('error', () => undefined)
  const children: ChildProcess[] = []
  const pools: Pool[] = []
  const start = async (file: string, ...args: string[]): Promise<string> => {
    const path = fileURLToPath(new URL(file, import.meta.url))
    const child = spawn(
      process.execPath,
      [...(process.env['BENCH_NODE_FLAGS']?.split(' ') ?? []), path, ...args],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    )
    children.push(child)
    const [line] = await once(child.stdout, 'data')
    return String(line).trim()
  }
  const http = (target: string): Pool => {
    const made = new Pool(target, { connections: CLIENTS, pipelining: 1 })
    pools.push(made)
    return made
  }
  const api = http(await start('./server.ts', url))
  return {
    store,
    pool,
    url,
    tenants,
    start,
    http,
    async call(client, body) {
      const project = tenants[client % tenants.length]?.project ?? ''
      const answer = await api.request({
        method: 'POST',
        path: `/projects/${project}/graphql`,
        headers: { 'content-type': 'application/json', accept: 'application/json' },
        body,
      })
      return answer.body.text()
    },
    async close() {
      await Promise.all(pools.map((one) => one.close()))
      // The clients of PostgreSQL end before it does.
      await Promise.all(
        children.map(async (child) => {
          child.kill('SIGTERM')
          if (child.exitCode === null) await once(child, 'exit')
        }),
      )
      await pool.end()
      await store.close()
      await postgres.stop()
      await rm(directory, { recursive: true, force: true })
    },
  }
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
