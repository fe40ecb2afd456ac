import type { Store } from '../../src/db/client.ts'
import { registerCluster } from '../../src/domain/operators/clusters.ts'
import { createAddressPool } from '../../src/domain/operators/pools.ts'
import { setProjectRelease } from '../../src/domain/operators/projects.ts'
import { createRegion } from '../../src/domain/operators/regions.ts'
import { NameTaken, PoolOverlap, type Refusal } from '../../src/domain/refusals.ts'
import type { ClusterLayout, ProjectLayout } from '../fleet/layout.ts'

const REGIONS = [
  { code: 'us-east-1', displayName: 'US East (Ashburn)', cityCode: 'IAD' },
  { code: 'us-west-1', displayName: 'US West (San Jose)', cityCode: 'SJC' },
]

/** Prefixes that are set aside for documentation: they are nobody's. */
const POOLS = [
  {
    name: 'us-east-1-ipv6',
    region: 'us-east-1',
    prefix: '2001:db8:100::/64',
    allocationPrefixLength: 128,
    skipFirstAndLast: true,
  },
  {
    name: 'us-west-1-ipv6',
    region: 'us-west-1',
    prefix: '2001:db8:200::/64',
    allocationPrefixLength: 128,
    skipFirstAndLast: true,
  },
  {
    name: 'us-east-1-ipv4',
    region: 'us-east-1',
    prefix: '198.51.100.0/24',
    skipFirstAndLast: true,
  },
  {
    name: 'us-west-1-ipv4',
    region: 'us-west-1',
    prefix: '203.0.113.0/24',
    skipFirstAndLast: true,
  },
]

/** Puts in what operators would: regions, clusters, pools, releases. What is there already stays. */
export async function seedStore(
  store: Store,
  clusters: readonly ClusterLayout[],
  projects: readonly ProjectLayout[],
): Promise<void> {
  for (const region of REGIONS) accept(await createRegion(store, region))
  for (const { name, region, servesIPv4 } of clusters) {
    const input = { name, region, context: name, servesIPv4, hasProber: true }
    accept(await registerCluster(store, input))
  }
  for (const pool of POOLS) accept(await createAddressPool(store, pool))
  const known = await store.prisma.project.findMany({ select: { name: true } })
  const names = new Set(known.map(({ name }) => name))
  for (const { name: project } of projects) {
    // A project that somebody closed stays closed.
    if (!names.has(project)) await setProjectRelease(store, { project, released: true })
  }
}

/** A thing that is there already is no failure; any other refusal is one of this seed. */
function accept(answer: object | Refusal): void {
  if (answer instanceof NameTaken || answer instanceof PoolOverlap) return
  if ('message' in answer) throw new Error(`the demo can't be set up: ${answer.message}`)
}
