import type { Store } from '../db/client.ts'
import type { AddressFamily, SessionAffinity } from '../rules/wanted.ts'
import type { Querier } from './querier.ts'
import type { RegionRecord } from './records.ts'

type RegionRow = {
  id: string
  code: string
  displayName: string
  cityCode: string
  clusters: number
  servesIPv4: boolean | null
  affinity: boolean | null
  accepts: boolean
}

const READ = {
  name: 'read-regions',
  text: `
SELECT region.id, region.code, region.display_name AS "displayName", region.city_code AS "cityCode",
  count(cluster.id)::integer AS clusters, bool_or(cluster.serves_ipv4) AS "servesIPv4",
  bool_and(cluster.session_affinity) AS affinity,
  coalesce(bool_or(cluster.mode = 'ACTIVE'), false) AND EXISTS (
    SELECT FROM address_pool pool WHERE pool.region_id = region.id AND pool.family = 'IPV6' AND pool.state = 'ACTIVE'
  ) AS accepts
FROM region LEFT JOIN cluster ON cluster.region_id = region.id AND cluster.forgotten_at IS NULL
GROUP BY region.id ORDER BY region.code`,
}

/** All regions with what their clusters serve today, by code. */
export async function readRegions(
  store: Store,
  client: Querier = store.pool,
): Promise<RegionRecord[]> {
  const { rows } = await client.query<RegionRow>(READ)
  return rows.map(toRegion)
}

function toRegion(row: RegionRow): RegionRecord {
  const addressFamilies: AddressFamily[] = row.clusters === 0 ? [] : ['IPV6']
  if (row.servesIPv4) addressFamilies.unshift('IPV4')
  const sessionAffinities: SessionAffinity[] = row.affinity
    ? ['NONE', 'CLIENT_IP', 'CLIENT_IP_AND_PROTOCOL']
    : ['NONE']
  return {
    id: row.id,
    code: row.code,
    displayName: row.displayName,
    cityCode: row.cityCode,
    addressFamilies,
    sessionAffinities,
    acceptsLoadBalancers: row.accepts,
  }
}

/** After this time (ms) regions are read again behind the answer. */
const FRESH = 1_000
type Remembered = { at: number; regions: Map<string, RegionRecord> }
const remembered = new WeakMap<Store['pool'], Remembered>()

/**
 * The region of an object that was read. Every object names one and they hardly ever change, so they
 * are remembered, and refreshed behind the answer. A transaction gives its own connection: waiting for a
 * second one while others wait for its locks, each with a connection, it would wait for ever.
 */
export async function regionOf(
  store: Store,
  id: string,
  client: Querier = store.pool,
): Promise<RegionRecord> {
  const known = remembered.get(store.pool)
  const region = known?.regions.get(id)
  if (known === undefined || region === undefined) {
    const found = (await refresh(store, client)).get(id)
    if (found === undefined) throw new Error(`there is no region ${id}`)
    return found
  }
  if (performance.now() - known.at > FRESH) {
    known.at = performance.now()
    // What is remembered stays good enough; the next one tries again.
    refresh(store).catch(() => undefined)
  }
  return region
}

async function refresh(
  store: Store,
  client: Querier = store.pool,
): Promise<Map<string, RegionRecord>> {
  const list = await readRegions(store, client)
  const regions = new Map(list.map((region) => [region.id, region]))
  remembered.set(store.pool, { at: performance.now(), regions })
  return regions
}
