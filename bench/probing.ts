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
const REGION = 'probed'

/** 10,000 backends probed every 5 s, by the side of a loop that only connects: both at the same time. */
export const probing: Benchmark = async (ground, scale) => {
  const bed = await ground.bed()
  const each = share(scale, LOAD_BALANCERS, 2)
  const cluster = await furnish(bed, each)
  const [probed, connected] = [await listen(), await listen()]
  const ours = await bed.run('./prober.ts', bed.url, cluster, ...probed.ports)
  const raw = await bed.run(
    './rawConnects.ts',
    `${each * BACKENDS}`,
    `${INTERVAL}`,
    ...connected.ports,
  )
  // Until all have been probed, and their first state is written.
  await delay(scale.seconds * 3.5 * 1_000)
  const begun = performance.now()
  const look = () => ({
    ours: { cpu: cpuOfTree(ours.pid), connections: probed.connections() },
    raw: { cpu: cpuOfTree(raw.pid), connections: connected.connections() },
  })
  const before = look()
  await delay(scale.seconds * 4 * 1_000)
  const after = look()
  const took = (performance.now() - begun) / 1_000
  await Promise.all([ours.end(), raw.end()])
  for (const server of [probed, connected]) server.close()
  const perSecond = (side: 'ours' | 'raw') =>
    (after[side].connections - before[side].connections) / took
  const cores = (side: 'ours' | 'raw') =>
    ((after[side].cpu ?? Number.NaN) - (before[side].cpu ?? Number.NaN)) / took
  for (const side of ['raw', 'ours'] as const) {
    console.log(
      `  ${side.padEnd(5)} ${perSecond(side).toFixed(0)} connections/s, ${cores(side).toFixed(2)} cores`,
    )
  }
  const findings: Finding[] = [
    {
      name: 'probes made by those due',
      value: (perSecond('ours') * INTERVAL) / (each * BACKENDS),
      // Pauses are jittered.
      atLeast: 0.9,
    },
    {
      name: 'CPU of probing by that of connecting',
      value: cores('ours') / cores('raw'),
      atMost: 1.5,
    },
    { name: 'cores that probing takes', value: cores('ours'), atMost: 1 },
  ]
  return findings
}

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
