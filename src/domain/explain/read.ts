import type { Store } from '../../db/client.ts'
import { PROBES_JSON } from '../reachability/read.ts'
import { type Explained, explain } from './explain.ts'
import type { Explanation } from './explanation.ts'

const READ = {
  name: 'read-explained',
  text: `
SELECT lb.id, rfc3339(clock_timestamp()) AS now, whole.record AS stored, ${PROBES_JSON} AS probes,
  json_build_object(
    'vpcOwned', vpc.owned AND vpc.project = lb.project,
    'clusters', (
      SELECT coalesce(json_agg(json_build_object('name', cluster.name,
        'served', coalesce(cluster.lease_until > clock_timestamp(), false),
        'trouble', cluster.trouble ->> 'message', 'lastError', placement.last_error,
        'attempts', coalesce(placement.attempts, 0), 'inventory', cluster.inventory) ORDER BY cluster.name), '[]'::json)
      FROM cluster
      LEFT JOIN placement ON placement.cluster_id = cluster.id AND placement.load_balancer_id = lb.id
      WHERE cluster.region_id = lb.region_id AND cluster.forgotten_at IS NULL),
    'holds', (
      SELECT coalesce(json_agg(json_build_object('address', host(hold.vip), 'cluster', cluster.name,
        'since', rfc3339(hold.since)) ORDER BY hold.vip, cluster.name), '[]'::json)
      FROM ipv4_reservation reservation
      JOIN hold ON hold.vip = reservation.address AND hold.gone_at IS NULL AND hold.load_balancer_id <> lb.id
      JOIN cluster ON cluster.id = hold.cluster_id
      WHERE reservation.load_balancer_id = lb.id)) AS facts
FROM load_balancers_json($1, $2, true) AS whole
JOIN load_balancer lb ON lb.id = whole.id
JOIN vpc ON vpc.id = lb.vpc_id`,
}

/** Explanations by load balancer, all read in one statement. `project` null: of all projects. */
export async function readExplanations(
  store: Store,
  { project, ids }: { project: string | null; ids: string[] },
): Promise<Map<string, Explanation>> {
  const { rows } = await store.pool.query<Explained & { id: string }>({
    ...READ,
    values: [ids, project],
  })
  return new Map(rows.map(({ id, ...explained }) => [id, explain(explained)]))
}
