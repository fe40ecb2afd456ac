import type { Store } from '../../db/client.ts'
import type { HealthCheckSettings, HealthState } from '../records.ts'

/** A load balancer with those of its backends that the owner of a cluster is concerned with. */
export type ProbedLoadBalancer = {
  id: string
  /** The last generation that changed ports, checks or backends. */
  rulesGeneration: number
  port: number
  healthCheck: HealthCheckSettings
  backends: ProbedBackend[]
}

export type ProbedBackend = {
  id: string
  address: string
  state: HealthState
  reason: string
  /** Tells this state of its health from earlier ones. */
  mark: string
}

/** Backends that live in the cluster ($1), are checked, and fulfil a condition. */
const backendsIn = (condition: string): string => `
SELECT lb.id, lb.rules_generation AS "rulesGeneration", lb.port, lb.health_check AS "healthCheck",
  json_agg(json_build_object('id', backend.id, 'address', host(backend.address),
    'state', backend.health_state, 'reason', backend.health_reason,
    'mark', health_mark(backend.health_state, backend.health_reason, backend.health_since))) AS backends
FROM cluster AS here
JOIN (SELECT DISTINCT vpc_id, address FROM endpoint WHERE cluster_id = $1) AS known ON true
JOIN backend ON backend.address = known.address AND backend.admin_state <> 'DISABLED'
JOIN load_balancer lb ON lb.id = backend.load_balancer_id AND lb.vpc_id = known.vpc_id
  AND lb.region_id = here.region_id AND lb.deleting_since IS NULL
  AND (lb.health_check ->> 'enabled')::boolean
WHERE here.id = $1 AND ${condition}
GROUP BY lb.id`

/** Clusters of the region with a prober that know the address too. */
const ELSEWHERE = `SELECT FROM endpoint JOIN cluster ON cluster.id = endpoint.cluster_id
  WHERE endpoint.vpc_id = known.vpc_id AND endpoint.address = known.address
    AND cluster.region_id = here.region_id AND cluster.has_prober`

const PROBED = backendsIn(`NOT EXISTS (${ELSEWHERE} AND cluster.id < here.id)`)
const NOT_PROBED = backendsIn(
  `backend.health_reason <> 'NoProber' AND NOT here.has_prober AND NOT EXISTS (${ELSEWHERE})`,
)

/**
 * All that is to be probed from a cluster where a prober stands. A backend whose address is known in
 * several clusters is probed from one of them only.
 */
export async function readProbed(store: Store, cluster: string): Promise<ProbedLoadBalancer[]> {
  const { rows } = await store.pool.query<ProbedLoadBalancer>({
    name: 'read-probed',
    text: PROBED,
    values: [cluster],
  })
  return rows
}

/** Backends of a cluster without a prober that nobody can probe, and that don't say so yet. */
export async function readNotProbed(store: Store, cluster: string): Promise<ProbedLoadBalancer[]> {
  const { rows } = await store.pool.query<ProbedLoadBalancer>({
    name: 'read-not-probed',
    text: NOT_PROBED,
    values: [cluster],
  })
  return rows
}
