import type { Store } from '../../db/client.ts'
import type { LoadBalancerRecord } from '../records.ts'
import { regionOf } from '../regions.ts'
import { type StoredLoadBalancer, toRecord } from './stored.ts'

const READ = {
  name: 'read-load-balancers',
  text: 'SELECT id, record FROM load_balancers_json($1, $2, false)',
}

/**
 * Whole load balancers, with addresses, backends, health and status, in one statement. `project`
 * null: of all projects. What doesn't exist, or belongs to another project, isn't in the answer.
 */
export async function readLoadBalancers(
  store: Store,
  { project, ids }: { project: string | null; ids: string[] },
): Promise<Map<string, LoadBalancerRecord>> {
  const { rows } = await store.pool.query<{ id: string; record: StoredLoadBalancer }>({
    ...READ,
    values: [ids, project],
  })
  const records = new Map<string, LoadBalancerRecord>()
  for (const { id, record } of rows) {
    records.set(id, toRecord(record, await regionOf(store, record.regionId)))
  }
  return records
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
