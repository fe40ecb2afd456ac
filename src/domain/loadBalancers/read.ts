import type { Store } from '../../db/client.ts'
import type { Querier } from '../querier.ts'
import type { LoadBalancerRecord } from '../records.ts'
import { regionOf } from '../regions.ts'
import { type StoredLoadBalancer, toRecord } from './stored.ts'

const READ = {
  name: 'read-load-balancers',
  text: 'SELECT record FROM load_balancers_json($1, $2, false)',
}

/**
 * Whole load balancers, with addresses, backends, health and status, in one statement. `project`
 * null: of all projects. What doesn't exist, or belongs to another project, isn't in the answer.
 */
export async function readLoadBalancers(
  store: Store,
  { project, ids }: { project: string | null; ids: string[] },
): Promise<Map<string, LoadBalancerRecord>> {
  const records = new Map<string, LoadBalancerRecord>()
  for (const record of await readStored(store.pool, { project, ids })) {
    records.set(record.id, toRecord(record, await regionOf(store, record.regionId)))
  }
  return records
}

/** The same as they are stored, also in a transaction. */
export async function readStored(
  client: Querier,
  { project, ids }: { project: string | null; ids: string[] },
): Promise<StoredLoadBalancer[]> {
  const { rows } = await client.query<{ record: StoredLoadBalancer }>({
    ...READ,
    values: [ids, project],
  })
  return rows.map(({ record }) => record)
}

/** The id of the live load balancer of that name; null when there is none. */
export async function findLoadBalancerByName(
  store: Store,
  where: { project: string; region: string; name: string },
): Promise<string | null> {
  const { rows } = await store.pool.query<{ id: string }>({
    name: 'find-load-balancer-by-name',
    text: `
SELECT lb.id FROM load_balancer lb JOIN region ON region.id = lb.region_id
WHERE lb.project = $1 AND region.code = $2 AND lb.name = $3 AND lb.deleting_since IS NULL`,
    values: [where.project, where.region, where.name],
  })
  return rows[0]?.id ?? null
}
