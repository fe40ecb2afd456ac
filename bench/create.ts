import { randomUUID } from 'node:crypto'
import { BENCH_REGION, type Bed, CLIENTS } from './bed.ts'
import { type Benchmark, compared, inTurns, rate } from './benchmark.ts'

/** A create with 3 backends, its VIP, event and placements, through HTTP and by one prepared statement. */
export const create: Benchmark = async (ground, scale) => {
  const bed = await ground.bed()
  const floor = await floorOf(bed)
  let number = 0
  const ours = async (client: number) => {
    number += 1
    const tenant = bed.tenants[client]
    const input = {
      name: `lb-${number}`,
      vpc: tenant?.vpcId,
      region: BENCH_REGION,
      protocol: { tcp: { port: 1 + (number % 60_000) } },
      backends: [0, 5, 1].map((index) => ({ address: tenant?.addresses[index] })),
    }
    const answer = await bed.call(client, JSON.stringify({ query: QUERY, variables: { input } }))
    if (!answer.includes('"generation":1')) throw new Error(answer)
  }
  const found = await inTurns(scale, {
    floor: () => rate(CLIENTS, scale.seconds, floor),
    ours: () => rate(CLIENTS, scale.seconds, ours),
  })
  return compared('create', found, 0.5)
}

const QUERY = `mutation ($input: CreateLoadBalancerInput!) { createLoadBalancer(input: $input) {
  ... on CreateLoadBalancerPayload { loadBalancer { id name generation addresses { address }
    status { phase observedGeneration } } } ... on UserError { code message } } }`

/** The same rows: load balancer, 3 backends, block (with a counter), 2 placements, event. */
const STATEMENT = `
WITH counted AS (UPDATE address_pool_counter SET next = next + 16
  WHERE pool_id = $5 AND stripe = $6 RETURNING next - 16 AS number),
lb AS (INSERT INTO load_balancer (id, project, region_id, vpc_id, name, protocol, port, health_check, phase, created_at, updated_at)
  VALUES ($1, $2, $3, $4, $7, 'TCP', $8, '{}', 'PENDING', now(), now()) RETURNING id),
backends AS (INSERT INTO backend (id, load_balancer_id, address, health_since, created_at)
  SELECT gen_random_uuid(), $1, address, now(), now() FROM unnest($9::inet[]) AS address),
block AS (INSERT INTO ipv6_block (prefix, vip, pool_id, load_balancer_id)
  SELECT '2001:db8:1::'::inet + number, '2001:db8:1::'::inet + number, $5, $1 FROM counted),
placements AS (INSERT INTO placement (load_balancer_id, cluster_id, placed, due)
  SELECT $1, cluster, true, now() FROM unnest($10::uuid[]) AS cluster)
INSERT INTO event (at, project, object_kind, object_id, version, generation, reason, message, actor_kind, actor_name)
SELECT now(), $2, 'LoadBalancer', id, 1, 1, 'LoadBalancerCreated', 'created', 'USER', 'bench' FROM lb`

async function floorOf({
  pool,
  store,
  tenants,
}: Bed): Promise<(client: number) => Promise<unknown>> {
  const region = await store.prisma.region.findFirstOrThrow()
  const clusters = await store.prisma.cluster.findMany()
  const [address = '', other = '', third = ''] = tenants[0]?.addresses ?? []
  // Counters that the product's own pool doesn't use, as many as it has.
  const poolId = await ownPool(store.pool, region.id)
  return (client) =>
    pool.query({
      name: 'floor-create',
      text: STATEMENT,
      values: [
        randomUUID(),
        tenants[client]?.project,
        region.id,
        tenants[client]?.vpc,
        poolId,
        client % 16,
        randomUUID(),
        80,
        [address, other, third],
        clusters.map(({ id }) => id),
      ],
    })
}

async function ownPool(pool: Bed['pool'], region: string): Promise<string> {
  const id = randomUUID()
  await pool.query(
    `INSERT INTO address_pool (id, name, region_id, family, prefix, allocation_prefix_length, excluded, blocks, state)
     VALUES ($1, 'floor', $2, 'IPV6', '2001:db8:1::/64', 128, '{}', 1, 'DISABLED')`,
    [id, region],
  )
  await pool.query(
    'INSERT INTO address_pool_counter (pool_id, stripe, next) SELECT $1, s, s FROM generate_series(0, 15) AS s',
    [id],
  )
  return id
}
