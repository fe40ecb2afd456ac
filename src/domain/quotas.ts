import type { Store } from '../db/client.ts'

export type QuotaRecord = {
  resource: string
  /** The region's code. */
  region: string
  used: number
  /** null: unlimited. */
  limit: number | null
}

/** What operators can set; `standard` applies where they set nothing. */
export const QUOTAS = [
  { resource: 'networking.datumapis.com/loadbalancers', standard: 50 },
  { resource: 'networking.datumapis.com/ipv4reservations', standard: 10 },
  { resource: 'networking.datumapis.com/rulespervpc', standard: 64 },
] as const

/** What is the same for everybody: the data plane takes no more in one rule. */
export const FIXED = { resource: 'networking.datumapis.com/backends', limit: 64 } as const

const READ = `
SELECT region.code AS region, quota.resource, quota.used::integer AS used, quota."limit"
FROM region CROSS JOIN LATERAL (VALUES
  (1, '${QUOTAS[0].resource}',
    (SELECT count(*) FROM load_balancer lb
     WHERE lb.project = $1 AND lb.region_id = region.id AND lb.deleting_since IS NULL),
    quota_limit($1, '${QUOTAS[0].resource}', region.id, ${QUOTAS[0].standard})),
  (2, '${QUOTAS[1].resource}',
    (SELECT count(*) FROM ipv4_reservation held WHERE held.project = $1 AND held.region_id = region.id),
    quota_limit($1, '${QUOTAS[1].resource}', region.id, ${QUOTAS[1].standard})),
  (3, '${QUOTAS[2].resource}',
    (SELECT coalesce(max(served_vips(vpc.id, region.id)), 0) FROM vpc WHERE vpc.project = $1),
    quota_limit($1, '${QUOTAS[2].resource}', region.id, ${QUOTAS[2].standard})),
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
