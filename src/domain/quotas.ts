import type { Store } from '../db/client.ts'

export type QuotaRecord = {
  resource: string
  /** The region's code. */
  region: string
  used: number
  /** null: unlimited. */
  limit: number | null
}

/** What operators can set; the store's function `standard_quota` has what applies where they set nothing. */
export const QUOTAS = [
  'networking.datumapis.com/loadbalancers',
  'networking.datumapis.com/ipv4reservations',
  'networking.datumapis.com/rulespervpc',
] as const

/** What is the same for everybody: the data plane takes no more in one rule. */
export const FIXED = { resource: 'networking.datumapis.com/backends', limit: 64 } as const

const READ = `
SELECT region.code AS region, quota.resource, quota.used::integer AS used, quota."limit"
FROM region CROSS JOIN LATERAL (VALUES
  (1, '${QUOTAS[0]}',
    (SELECT count(*) FROM load_balancer lb
     WHERE lb.project = $1 AND lb.region_id = region.id AND lb.deleting_since IS NULL),
    quota_limit($1, '${QUOTAS[0]}', region.id)),
  (2, '${QUOTAS[1]}',
    (SELECT count(*) FROM ipv4_reservation held WHERE held.project = $1 AND held.region_id = region.id),
    quota_limit($1, '${QUOTAS[1]}', region.id)),
  (3, '${QUOTAS[2]}',
    (SELECT coalesce(max(served_vips(vpc.id, region.id)), 0) FROM vpc WHERE vpc.project = $1),
    quota_limit($1, '${QUOTAS[2]}', region.id)),
  (4, '${FIXED.resource}',
    (SELECT coalesce(max(fullest.count), 0) FROM (
      SELECT count(*) FROM load_balancer lb JOIN backend ON backend.load_balancer_id = lb.id
      WHERE lb.project = $1 AND lb.region_id = region.id AND lb.deleting_since IS NULL
      GROUP BY lb.id) AS fullest),
    ${FIXED.limit})) AS quota (place, resource, used, "limit")
WHERE $2::text IS NULL OR region.code = $2
ORDER BY region.code, quota.place`

/**
 * A project's quotas in one region (by code; null: in every one), with what is used, counted from rows.
 * Of the VIPs per VPC, and the backends per load balancer, the fullest one's.
 */
export async function readQuotas(
  store: Store,
  { project, region }: { project: string; region: string | null },
): Promise<QuotaRecord[]> {
  const { rows } = await store.pool.query<QuotaRecord>({
    name: 'read-quotas',
    text: READ,
    values: [project, region],
  })
  return rows
}
