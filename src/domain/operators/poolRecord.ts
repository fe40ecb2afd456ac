import type { Store } from '../../db/client.ts'
import type { AddressFamily } from '../../rules/wanted.ts'
import { Conditions, countRows, type PageRequest, readPage } from '../paging.ts'
import type { Querier } from '../querier.ts'
import type { Page } from '../records.ts'

export type PoolState = 'ACTIVE' | 'DISABLED'

/** A pool as operators see it. Counts are decimal texts: an IPv6 pool may hold more than 2^53. */
export type PoolRecord = {
  id: string
  name: string
  regionId: string
  family: AddressFamily
  prefix: string
  allocationPrefixLength: number
  state: PoolState
  skipFirstAndLast: boolean
  coolDownSeconds: number
  excluded: string[]
  /** Blocks that can be handed out, taken or not. */
  size: string
  used: string
  /** Given back, but a cluster may still carry them. */
  held: string
  coolingDown: string
}

const POOL_JSON = `json_build_object(
  'id', pool.id, 'name', pool.name, 'regionId', pool.region_id, 'family', pool.family,
  'prefix', pool.prefix::text, 'allocationPrefixLength', pool.allocation_prefix_length,
  'state', pool.state, 'skipFirstAndLast', pool.skip_first_and_last,
  'coolDownSeconds', pool.cool_down_seconds,
  'excluded', ARRAY(SELECT prefix::text FROM unnest(pool.excluded) AS prefix),
  'size', (pool.blocks - (SELECT coalesce(sum(upper(range) - lower(range)), 0) FROM unnest(pool.unusable) AS range))::text,
  'used', counts.used::text, 'held', counts.held::text, 'coolingDown', counts.cooling::text)`

/** `taken`: of both families, each address or VIP once. */
const POOLS = `address_pool pool CROSS JOIN LATERAL (
  SELECT count(*) FILTER (WHERE taken.used) AS used,
    count(*) FILTER (WHERE NOT taken.used AND taken.held) AS held,
    count(*) FILTER (WHERE NOT taken.used AND NOT taken.held AND taken.reusable_at > clock_timestamp()) AS cooling
  FROM (
    SELECT block.load_balancer_id IS NOT NULL AS used, block.reusable_at,
      EXISTS (SELECT FROM hold WHERE hold.vip = block.vip AND hold.gone_at IS NULL) AS held
    FROM ipv6_block block WHERE block.pool_id = pool.id AND pool.family = 'IPV6'
    UNION ALL
    SELECT single.reservation_id IS NOT NULL, single.reusable_at,
      EXISTS (SELECT FROM hold WHERE hold.vip = single.address AND hold.gone_at IS NULL)
    FROM ipv4_address single WHERE single.pool_id = pool.id AND pool.family = 'IPV4') AS taken) counts`

/** Pools by id. */
export async function readPools(
  store: Store,
  ids: readonly string[],
  client: Querier = store.pool,
): Promise<Map<string, PoolRecord>> {
  const { rows } = await client.query<{ pool: PoolRecord }>(
    `SELECT ${POOL_JSON} AS pool FROM ${POOLS} WHERE pool.id = ANY ($1::uuid[])`,
    [ids],
  )
  return new Map(rows.map(({ pool }) => [pool.id, pool]))
}

/** One page of pools, by name; `region` is a code. */
export function listPools(
  store: Store,
  { region, page }: { region: string | null; page: PageRequest },
): Promise<Page<PoolRecord>> {
  return readPage<PoolRecord>(
    store.pool,
    {
      from: POOLS,
      item: POOL_JSON,
      id: 'pool.id',
      order: { sql: 'pool.name', type: 'text', descending: false },
      conditions: ofRegion(region),
    },
    page,
  )
}

/** How many there are. */
export function countPools(store: Store, region: string | null): Promise<number> {
  return countRows(store.pool, { from: 'address_pool pool', conditions: ofRegion(region) })
}

function ofRegion(code: string | null): Conditions {
  const conditions = new Conditions()
  if (code !== null) {
    conditions.add('pool.region_id IN (SELECT id FROM region WHERE code = ?)', code)
  }
  return conditions
}
