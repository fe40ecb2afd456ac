import { once } from 'node:events'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { recordEndpoints } from '../src/domain/inventory.ts'
import { registerCluster } from '../src/domain/operators/clusters.ts'
import { createRegion } from '../src/domain/operators/regions.ts'
import type { Bed } from './bed.ts'
import { type Benchmark, type Finding, share } from './benchmark.ts'
import { cpuOfTree } from './cpu.ts'
import { seedLoadBalancers } from './seed.ts'

const LOAD_BALANCERS = 200
const BACKENDS = 50
/** Of seeded load balancers, in seconds. */
const INTERVAL = 5
/** Ports of each side: what is closed keeps its pair of ports for a while. */
const PORTS = 16
/** Of what begins together (ms). */
const TOGETHER = 10
const REGION = 'probed'

/**
 * 10,000 backends probed every 5 s, by the side of two loops that only connect, all at the same time: one
 * spreads its connections evenly, as probes with settings of their own fall due; the other begins those of
 * 10 ms together, as our prober does.
 */
export const probing: Benchmark = async (ground, scale) => {
  const bed = await ground.bed()
  const each = share(scale, LOAD_BALANCERS, 2)
  const cluster = await furnish(bed, each)
  const raw = async (tick: number) => {
    const servers = await listen()
    const numbers = [each * BACKENDS, INTERVAL, tick].map(String)
    return { servers, ...(await bed.run('./rawConnects.ts', ...numbers, ...servers.ports)) }
  }
  const servers = await listen()
  const sides = {
    evenly: await raw(1),
    together: await raw(TOGETHER),
    ours: { servers, ...(await bed.run('./prober.ts', bed.url, cluster, ...servers.ports)) },
  }
  // Until all have been probed, and their first state is written.
  await delay(scale.seconds * 3.5 * 1_000)
  const look = () => measured(sides, ({ pid, servers }) => [cpuOfTree(pid), servers.connections()])
  const begun = performance.now()
  const before = look()
  await delay(scale.seconds * 4 * 1_000)
  const after = look()
  const took = (performance.now() - begun) / 1_000
  await Promise.all(Object.values(sides).map(({ end }) => end()))
  for (const side of Object.values(sides)) side.servers.close()
  const rates = measured(sides, (_, side) => {
    const [cores = Number.NaN, perSecond = Number.NaN] = after[side].map(
      (value, index) => ((value ?? Number.NaN) - (before[side][index] ?? Number.NaN)) / took,
    )
    console.log(
      `  ${side.padEnd(9)} ${perSecond.toFixed(0)} connections/s, ${cores.toFixed(2)} cores`,
    )
    return { cores, perSecond }
  })
  const findings: Finding[] = [
    {
      name: 'probes made by those due',
      value: (rates.ours.perSecond * INTERVAL) / (each * BACKENDS),
      // Pauses are jittered.
      atLeast: 0.9,
    },
    {
      name: 'CPU of probing by that of connecting evenly',
      value: rates.ours.cores / rates.evenly.cores,
      atMost: 1.5,
    },
    {
      name: 'CPU of probing by that of connecting by tens of milliseconds',
      value: rates.ours.cores / rates.together.cores,
      told: true,
    },
    { name: 'cores that probing takes', value: rates.ours.cores, atMost: 1 },
  ]
  return findings
}

type Side = 'evenly' | 'together' | 'ours'
const measured = <Value, Found>(
  { evenly, together, ours }: Record<Side, Value>,
  by: (value: Value, side: Side) => Found,
): Record<Side, Found> => ({
  evenly: by(evenly, 'evenly'),
  together: by(together, 'together'),
  ours: by(ours, 'ours'),
})

async function furnish(bed: Bed, each: number): Promise<string> {
  const { store, tenants } = bed
  await createRegion(store, { code: REGION, displayName: REGION, cityCode: 'IAD' })
  await registerCluster(store, { name: REGION, region: REGION, context: REGION, hasProber: true })
  const { id } = await store.prisma.cluster.findFirstOrThrow({ where: { name: REGION } })
  const [tenant] = tenants
  if (tenant === undefined) throw new Error('the bed has no tenant')
  const vpc = await store.prisma.vpc.findUniqueOrThrow({ where: { id: tenant.vpc } })
  const addresses = Array.from(
    { length: BACKENDS },
    (_, host) => `fd03::${(host + 1).toString(16)}`,
  )
  const seen = addresses.map((address, host) => ({
    attachmentUid: `probed-${host}`,
    attachmentNamespace: tenant.project,
    attachmentName: `probed-${host}`,
    attachmentRef: `p${host}`,
    vpcRef: vpc.ref,
    address,
    node: `node-${host}`,
    egressKind: 'veth' as const,
  }))
  await recordEndpoints(
    store,
    { cluster: id, epoch: 0 },
    seen.map(({ attachmentUid }) => attachmentUid),
    seen,
  )
  await seedLoadBalancers(bed, {
    region: REGION,
    tenants: [{ ...tenant, addresses }],
    each,
    from: 9_000_000,
  })
  return id
}

async function listen(): Promise<{ ports: string[]; connections(): number; close(): void }> {
  let connections = 0
  const servers: Server[] = []
  const ports: string[] = []
  for (let index = 0; index < PORTS; index += 1) {
    const server = createServer((socket) => {
      connections += 1
      socket.on('error', () => undefined)
      socket.resume()
    })
    server.listen(0, '127.0.0.1', 4_096)
    await once(server, 'listening')
    servers.push(server)
    ports.push(String((server.address() as AddressInfo).port))
  }
  return {
    ports,
    connections: () => connections,
    close: () => {
      for (const server of servers) server.close()
    },
  }
}
