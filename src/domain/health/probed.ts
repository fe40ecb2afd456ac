import type { Store } from '../../db/client.ts'
import type { HealthCheckSettings, HealthState } from '../records.ts'
import type { Flaps } from './flapping.ts'

/** A load balancer with those of its backends that the owner of a cluster is concerned with. */
export type ProbedLoadBalancer = {
  id: string
  /** The last generation that changed ports, checks or backends. */
  rulesGeneration: number
  port: number
  healthCheck: HealthCheckSettings
  backends: ProbedBackend[]
  /** Tells all this from how it was earlier, and will be. */
  mark: string
}

export type ProbedBackend = {
  id: string
  address: string
  state: HealthState
  reason: string
  /** null: it never came and went. */
  flaps: Flaps | null
  /** Tells this state of its health from earlier ones. */
  mark: string
}

/** Of which backends there are, and of what each one's own mark is made of. */
const MARK = `lb.rules_generation || ' ' || sum(hash_record_extended(
    (backend.id, backend.health_state, backend.health_reason, backend.health_since), 0)) AS mark`
const ALL = `lb.rules_generation AS "rulesGeneration", lb.port, lb.health_check AS "healthCheck",
  json_agg(json_build_object('id', backend.id, 'address', host(backend.address),
    'state', backend.health_state, 'reason', backend.health_reason, 'flaps', backend.health_flaps,
    'mark', health_mark(backend.health_state, backend.health_reason, backend.health_since))) AS backends,
  ${MARK}`

// Each step below looks up a few rows by the only index that serves it, and with OFFSET in the order written here:
// so no backend is met twice however many VPCs use its address, whatever was in the tables when it was planned.
const LIVING_HERE = `(SELECT DISTINCT address FROM endpoint WHERE cluster_id = $1) AS one
CROSS JOIN LATERAL (SELECT * FROM backend WHERE address = one.address OFFSET 0) AS backend
CROSS JOIN LATERAL (SELECT * FROM load_balancer WHERE id = backend.load_balancer_id OFFSET 0) AS lb`
const OF_THOSE_NAMED = `unnest($2::uuid[]) AS named (id)
CROSS JOIN LATERAL (SELECT * FROM load_balancer WHERE id = named.id OFFSET 0) AS lb
CROSS JOIN LATERAL (SELECT * FROM backend WHERE load_balancer_id = lb.id OFFSET 0) AS backend`

/**
 * Load balancers with those of some backends that live in the cluster ($1), are checked, and fulfil a
 * condition; but for addresses that other clusters of the region, where a prober stands, know too (of
 * those, the ones that `leftTo`).
 */
const backendsIn = (what: string, some: string, condition: string, leftTo: string): string => `
SELECT lb.id, ${what}
FROM cluster AS here CROSS JOIN ${some}
CROSS JOIN LATERAL (
  SELECT bool_or(other.id = $1) AS here,
    bool_or(other.has_prober AND other.region_id = here.region_id AND ${leftTo}) AS elsewhere
  FROM (SELECT cluster_id FROM endpoint WHERE vpc_id = lb.vpc_id AND address = backend.address OFFSET 0) AS seen
  JOIN cluster AS other ON other.id = seen.cluster_id) AS lives
WHERE here.id = $1 AND ${condition} AND backend.admin_state <> 'DISABLED' AND lb.region_id = here.region_id
  AND lb.deleting_since IS NULL AND (lb.health_check ->> 'enabled')::boolean AND lives.here AND NOT lives.elsewhere
GROUP BY lb.id, lb.rules_generation, lb.port, lb.health_check`

const [HERE, LEFT] = ['here.has_prober', 'other.id < $1'] as const
const MARKS = backendsIn(MARK, LIVING_HERE, HERE, LEFT)
const PROBED = backendsIn(ALL, OF_THOSE_NAMED, HERE, LEFT)
const NOT_PROBED = backendsIn(
  ALL,
  LIVING_HERE,
  `NOT here.has_prober AND backend.health_reason <> 'NoProber'`,
  'other.id <> $1',
)

/**
 * The marks, by load balancer, of all that is to be probed from a cluster where a prober stands: reading
 * them is cheaper than reading it all, which changes seldom. A backend whose address is known in several
 * clusters is probed from one of them only.
 */
export async function readProbedMarks(store: Store, cluster: string): Promise<Map<string, string>> {
  const { rows } = await store.pool.query<Pick<ProbedLoadBalancer, 'id' | 'mark'>>({
    name: 'read-probed-marks',
    text: MARKS,
    values: [cluster],
  })
  return new Map(rows.map(({ id, mark }) => [id, mark]))
}

/** What is to be probed of some load balancers. */
export async function readProbed(
  store: Store,
  cluster: string,
  ids: string[],
): Promise<ProbedLoadBalancer[]> {
  if (ids.length === 0) return []
  const { rows } = await store.pool.query<ProbedLoadBalancer>({
    name: 'read-probed',
    text: PROBED,
    values: [cluster, ids],
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
