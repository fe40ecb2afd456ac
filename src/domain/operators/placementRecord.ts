import type { Store } from '../../db/client.ts'
import type { Finding, PlacementReport } from '../../rules/report.ts'
import type { StatusCondition } from '../records.ts'

/** A load balancer in one cluster, as operators see it. */
export type PlacementRecord = {
  /** The cluster's id. */
  cluster: string
  asked: number
  applied: number
  dueSince: string | null
  attempts: number
  lastError: string | null
  reportedAt: string | null
  conditions: StatusCondition[]
}

type Row = Omit<PlacementRecord, 'conditions'> & {
  loadBalancer: string
  report: PlacementReport | null
}

/** The placements of load balancers by their ids, ordered by the names of clusters. */
export async function readPlacements(
  store: Store,
  loadBalancers: readonly string[],
): Promise<Map<string, PlacementRecord[]>> {
  const { rows } = await store.pool.query<Row>({
    name: 'read-placements',
    text: `
SELECT placement.load_balancer_id AS "loadBalancer", placement.cluster_id AS cluster,
  placement.asked::integer, placement.applied::integer,
  CASE WHEN placement.asked > placement.applied THEN rfc3339(placement.due_since) END AS "dueSince",
  placement.attempts, placement.last_error AS "lastError", rfc3339(placement.reported_at) AS "reportedAt",
  placement.report
FROM placement JOIN cluster ON cluster.id = placement.cluster_id
WHERE placement.load_balancer_id = ANY ($1::uuid[]) ORDER BY cluster.name`,
    values: [loadBalancers],
  })
  const found = new Map<string, PlacementRecord[]>()
  for (const { loadBalancer, report, ...shown } of rows) {
    const record = { ...shown, conditions: conditionsOf(report, shown.reportedAt) }
    found.set(loadBalancer, [...(found.get(loadBalancer) ?? []), record])
  }
  return found
}

/** A report isn't told apart from the one before it: its findings are as old as it is. */
function conditionsOf(report: PlacementReport | null, at: string | null): StatusCondition[] {
  if (report === null || at === null) return []
  const condition = (type: string, finding: Finding, about = ''): StatusCondition => ({
    type,
    status: finding.status,
    reason: finding.reason,
    message: about + finding.message,
    lastTransitionTime: at,
    observedGeneration: report.generation,
  })
  return [
    condition('ClusterReady', report.cluster),
    condition('AffinityHonoured', report.affinity),
    ...Object.entries(report.vips).flatMap(([vip, { provisioned, advertised }]) => [
      condition('Provisioned', provisioned, `${vip}: `),
      condition('Advertised', advertised, `${vip}: `),
    ]),
  ]
}
