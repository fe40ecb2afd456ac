import { setTimeout as delay } from 'node:timers/promises'
import { bindingName, ruleName } from '../src/rules/names.ts'
import {
  DATA_PLANE_NAMESPACE,
  FIELD_MANAGER,
  GENERATION_ANNOTATION,
  INSTANCE_LABEL,
  LOAD_BALANCER_LABEL,
  MANAGED_BY_LABEL,
  NETWORK_RULES,
  type NetworkRule,
  SERVICE_VIP_BINDINGS,
  type ServiceVIPBinding,
  VPC_LABEL,
} from '../src/rules/objects.ts'
import { type Benchmark, compared, measuring, type Rate, share, wordsOf } from './benchmark.ts'
import type { Clusters, RealCluster } from './clusters.ts'

const LOAD_BALANCERS = 1_000
/** How many placements of one cluster a worker has under way. */
const AT_ONCE = 16
/** How far it is is looked for this often (ms): every look counts all placements, on the same machine. */
const LOOK = 100

/**
 * Placements per second of 1,000 load balancers in 2 clusters from nothing, by the side of a loop that
 * applies as many equal objects, as many at once, just before and just after.
 */
export const converge: Benchmark = async (ground, scale) => {
  const clusters = await ground.clusters()
  const count = share(scale, LOAD_BALANCERS, 20)
  // Attachments are known, and one of each object is there to be copied.
  const first = await clusters.startWorker()
  await clusters.create(1)
  await clusters.applied()
  await first.end()
  const raw = async (run: number) => {
    const ended = measuring()
    await Promise.all(clusters.each.map((cluster) => applyAll(cluster, count, run)))
    return ended(count * clusters.each.length)
  }
  await raw(0)
  const before = await raw(1)
  const ours = await converged(clusters, count)
  const after = await raw(2)
  for (const [name, found] of Object.entries({ before, ours, after }))
    console.log(`  ${name.padEnd(14)} ${wordsOf(found)}`)
  const floor = {
    perSecond: (before.perSecond + after.perSecond) / 2,
    cpu: before.cpu === null || after.cpu === null ? null : (before.cpu + after.cpu) / 2,
  }
  return compared('converge, placements', (name) => (name === 'floor' ? floor : ours), 0.8)
}

async function converged(clusters: Clusters, count: number): Promise<Rate> {
  const { create, startWorker, progress } = clusters
  const numbers = Array.from({ length: count }, (_, index) => index + 2)
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      for (let number = numbers.pop(); number !== undefined; number = numbers.pop()) {
        await create(number)
      }
    }),
  )
  // What the worker reads when it starts isn't measured: from the first placement on.
  const before = await progress()
  const worker = startWorker()
  let begun: { ended: (count: number) => Rate; applied: number } | undefined
  let now = before
  while (now.waiting > 0) {
    await delay(LOOK)
    now = await progress()
    if (begun === undefined && now.applied > before.applied) {
      begun = { ended: measuring(), applied: now.applied }
    }
  }
  if (begun === undefined) throw new Error('nothing was applied')
  const found = begun.ended(now.applied - begun.applied)
  await (await worker).end()
  return found
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
  namespace: DATA_PLANE_NAMESPACE,
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
