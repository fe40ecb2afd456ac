import type { Store } from '../../db/client.ts'
import type { Figures } from '../../telemetry/figures.ts'

type Cluster = Figures['clusters'][number]
type Pool = Figures['pools'][number]

/**
 * What there is to do and what is left, of each cluster and pool: for those who watch the installation.
 * Counts as numbers, for curves: beyond 2^53 they are rounded.
 */
export async function readFigures(store: Store): Promise<Figures> {
  const [clusters, pools] = await Promise.all([
    store.pool.query<Cluster>({
      name: 'read-figures-of-clusters',
      text: `
SELECT cluster.name AS cluster, coalesce(cluster.lease_until > clock_timestamp(), false) AS owned,
  cluster.unreachable_since IS NULL AS reachable,
  counts.due::float8 AS due, counts.behind::float8 AS behind, counts.oldest::float8 AS "oldestSeconds",
  (SELECT count(*) FROM hold WHERE hold.cluster_id = cluster.id AND hold.gone_at IS NULL)::float8 AS holds
FROM cluster CROSS JOIN LATERAL (
  -- What was put off after a failure isn't due, but behind.
  SELECT count(*) FILTER (WHERE due <= clock_timestamp()) AS due, count(*) AS behind,
    coalesce(extract(epoch FROM clock_timestamp() - min(due_since)), 0) AS oldest
  FROM placement WHERE placement.cluster_id = cluster.id AND placement.due IS NOT NULL) counts
WHERE cluster.forgotten_at IS NULL ORDER BY cluster.name`,
    }),
    store.pool.query<Pool>({
      name: 'read-figures-of-pools',
      text: `
SELECT pool.name AS pool, region.code AS region, pool.family,
  (pool.blocks - (SELECT coalesce(sum(upper(range) - lower(range)), 0) FROM unnest(pool.unusable) AS range))::float8 AS size,
  counts.used::float8 AS used, counts.resting::float8 AS resting
FROM address_pool pool JOIN region ON region.id = pool.region_id CROSS JOIN LATERAL (
  SELECT count(*) FILTER (WHERE taken.used) AS used,
    count(*) FILTER (WHERE NOT taken.used AND taken.reusable_at > clock_timestamp()) AS resting
  FROM (
    SELECT load_balancer_id IS NOT NULL AS used, reusable_at FROM ipv6_block
    WHERE pool_id = pool.id AND pool.family = 'IPV6'
    UNION ALL
    SELECT reservation_id IS NOT NULL, reusable_at FROM ipv4_address
    WHERE pool_id = pool.id AND pool.family = 'IPV4') AS taken) counts
ORDER BY pool.name`,
    }),
  ])
  return { clusters: clusters.rows, pools: pools.rows }
}
