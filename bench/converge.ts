import { setTimeout as delay } from 'node:timers/promises'
import { bindingName, ruleName } from '../src/rules/names.ts'
import {
  FIELD_MANAGER,
  GENERATION_ANNOTATION,
  INSTANCE_LABEL,
  LOAD_BALANCER_LABEL,
  MANAGED_BY_LABEL,
  NAMESPACES,
  NETWORK_RULES,
  type NetworkRule,
  SERVICE_VIP_BINDINGS,
  type ServiceVIPBinding,
  VPC_LABEL,
} from '../src/rules/objects.ts'
import { type Benchmark, compared, inTurns, measuring, type Rate, share } from './benchmark.ts'
import type { BenchWorker, Clusters, RealCluster } from './clusters.ts'

const LOAD_BALANCERS = 1_000
/** With the run before that isn't measured: gateways hold 4,096 VIPs, beyond which nothing is written. */
const ROUNDS = 3
/** How many placements of one cluster a worker writes at a time. */
const AT_ONCE = 16
/** How far it is is looked for this often (ms). */
const LOOK = 100

/**
 * Placements per second of 1,000 load balancers in 2 clusters from nothing, in turns with a loop that applies as
 * many equal objects, as many at once.
 */
export const converge: Benchmark = async (ground, scale) => {
  const clusters = await ground.clusters()
  const count = share(scale, LOAD_BALANCERS, 20)
  const worker = await clusters.startWorker()
  // One of each object is there to be copied.
  await clusters.create(1)
  await clusters.applied()
  await prepareFloor(clusters)
  let runs = 0
  const rounds = Math.min(scale.rounds, ROUNDS)
  const found = await inTurns(
    { ...scale, rounds },
    {
      floor: async () => {
        runs += 1
        const ended = measuring()
        await Promise.all(clusters.each.map((cluster) => applyAll(cluster, count, runs)))
        return ended(count * clusters.each.length)
      },
      ours: () => converged(clusters, worker, { first: 2 + (runs - 1) * count, count }),
    },
  )
  await worker.end()
  return compared('converge, placements', found, 0.8)
}

/** All are asked for at once: the worker does nothing until they are. */
async function converged(
  { create, waiting, isBehind }: Clusters,
  worker: BenchWorker,
  { first, count }: { first: number; count: number },
): Promise<Rate> {
  worker.pause()
  let next = first
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      while (next < first + count) {
        next += 1
        await create(next - 1)
      }
    }),
  )
  const all = await waiting()
  worker.goOn()
  let left = all
  // From the first placement on.
  while (left === all) {
    await delay(LOOK)
    left = await waiting()
  }
  const ended = measuring()
  while (await isBehind()) await delay(LOOK)
  return ended(left)
}

/** What the floor applies stands beside what the worker watches, who has nothing to do with it. */
export async function prepareFloor({ each }: Clusters): Promise<void> {
  for (const { writer } of each) {
    await writer.create(NAMESPACES, { metadata: { name: FLOOR } })
  }
}

/** A rule and its binding, one after the other, as a placement needs them. */
async function applyAll({ cluster }: RealCluster, count: number, run: number): Promise<void> {
  let next = 0
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (next < count) {
        const number = next
        next += 1
        await cluster.apply(NETWORK_RULES, rule(number, run))
        await cluster.apply(SERVICE_VIP_BINDINGS, binding(number, run))
      }
    }),
  )
}

const FLOOR = 'floor'
const VPC = 'fl00r0'
const NODE = 'floor-node'
const BACKEND = 'fd20:1:0:1::1'
const vipOf = (number: number) => `2001:db8:f::${(number + 1).toString(16)}`

/** As long as a name or a key of ours, which an apply costs by, but nobody's. */
const foreignName = (name: string) => name.replace(/^lb-/, 'fl-')
const foreignKey = (key: string) => `${key.slice(0, -1)}x`

const idOf = (number: number, run: number) =>
  `${String(run).padStart(8, '0')}-0000-7000-8000-${String(number).padStart(12, '0')}`
const nameOf = (number: number, run: number) => ruleName(idOf(number, run), vipOf(number))

const metaOf = (name: string, number: number, run: number) => ({
  name: foreignName(name),
  namespace: FLOOR,
  labels: {
    [foreignKey(MANAGED_BY_LABEL)]: FIELD_MANAGER,
    [foreignKey(INSTANCE_LABEL)]: idOf(0, run),
    [foreignKey(LOAD_BALANCER_LABEL)]: idOf(number, run),
  },
})

/** Like those that we write, also in what it weighs, but nobody's. */
export const rule = (number: number, run: number, port = 80): NetworkRule => ({
  apiVersion: `${NETWORK_RULES.group}/${NETWORK_RULES.version}`,
  kind: NETWORK_RULES.kind,
  metadata: {
    ...metaOf(nameOf(number, run), number, run),
    annotations: { [foreignKey(GENERATION_ANNOTATION)]: '1' },
  },
  spec: {
    vpcRef: VPC,
    vipAddresses: [vipOf(number)],
    protocol: 'tcp',
    port,
    vpcAttachmentRef: 'a1',
    backends: [{ address: BACKEND, port }],
  },
})

const binding = (number: number, run: number): ServiceVIPBinding => {
  const meta = metaOf(bindingName(nameOf(number, run), BACKEND, NODE), number, run)
  const labels = { ...meta.labels, [foreignKey(VPC_LABEL)]: VPC }
  return {
    apiVersion: `${SERVICE_VIP_BINDINGS.group}/${SERVICE_VIP_BINDINGS.version}`,
    kind: SERVICE_VIP_BINDINGS.kind,
    metadata: { ...meta, labels },
    spec: {
      targetRef: { kind: 'Node', name: NODE },
      vipAddress: vipOf(number),
      port: 80,
      protocol: 'tcp',
      backendAddress: BACKEND,
      backendPort: 80,
      egressKind: 'veth',
    },
  }
}
