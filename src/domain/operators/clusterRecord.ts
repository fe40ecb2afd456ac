import { REASONS, type Reason } from '../../rules/reasons.ts'
import type { StatusCondition } from '../records.ts'

export type ClusterMode = 'ACTIVE' | 'CORDONED' | 'DRAINED'
export type ClusterState = 'ACTIVE' | 'CORDONED' | 'DRAINING' | 'DRAINED' | 'FORGOTTEN'

/** A cluster as operators see it. */
export type ClusterRecord = {
  id: string
  name: string
  regionId: string
  context: string
  mode: ClusterMode
  state: ClusterState
  servesIPv4: boolean
  resolvesRemoteBackends: boolean
  hasProber: boolean
  reachable: StatusCondition
  sweep: StatusCondition
  inventory: StatusCondition
  capabilities: { name: string; value: string }[]
  /** Rules that may be there: holds that are open. */
  rules: number
  behind: number
  lagSeconds: number
  /** The worker that serves it now. */
  owner: string | null
}

type Noted = Pick<StatusCondition, 'status' | 'reason' | 'message'> & { since: string }

export type StoredCluster = Pick<
  ClusterRecord,
  | 'id'
  | 'name'
  | 'regionId'
  | 'context'
  | 'mode'
  | 'state'
  | 'servesIPv4'
  | 'resolvesRemoteBackends'
  | 'hasProber'
  | 'rules'
  | 'behind'
  | 'lagSeconds'
  | 'owner'
> & {
  createdAt: string
  dialect: string | null
  sessionAffinity: boolean
  gateways: number | null
  reachableSince: string | null
  unreachableSince: string | null
  trouble: Pick<Noted, 'reason' | 'message' | 'since'> | null
  leaseUntil: string | null
  sweep: Noted | null
  inventory: Noted | null
}

/** All that `toCluster` takes, of the rows of `cluster`. */
export const CLUSTER_JSON = `json_build_object(
  'id', cluster.id, 'name', cluster.name, 'regionId', cluster.region_id, 'context', cluster.context,
  'mode', cluster.mode, 'servesIPv4', cluster.serves_ipv4,
  'resolvesRemoteBackends', cluster.resolves_remote_backends, 'hasProber', cluster.has_prober,
  'state', CASE
    WHEN cluster.forgotten_at IS NOT NULL THEN 'FORGOTTEN'
    WHEN cluster.mode <> 'DRAINED' THEN cluster.mode
    WHEN EXISTS (SELECT FROM placement WHERE placement.cluster_id = cluster.id)
      OR EXISTS (SELECT FROM hold WHERE hold.cluster_id = cluster.id AND hold.gone_at IS NULL) THEN 'DRAINING'
    ELSE 'DRAINED' END,
  'rules', (SELECT count(*) FROM hold WHERE hold.cluster_id = cluster.id AND hold.gone_at IS NULL),
  'behind', (SELECT count(*) FROM placement WHERE placement.cluster_id = cluster.id AND placement.asked > placement.applied),
  'lagSeconds', (SELECT coalesce(floor(extract(epoch FROM clock_timestamp() - min(placement.due_since))), 0)::integer
    FROM placement WHERE placement.cluster_id = cluster.id AND placement.asked > placement.applied),
  'owner', CASE WHEN cluster.lease_until > clock_timestamp() THEN cluster.owner END,
  'createdAt', rfc3339(cluster.created_at), 'dialect', cluster.dialect,
  'sessionAffinity', cluster.session_affinity, 'gateways', cluster.gateways,
  'reachableSince', rfc3339(cluster.reachable_since), 'unreachableSince', rfc3339(cluster.unreachable_since),
  'trouble', cluster.trouble, 'leaseUntil', rfc3339(nullif(cluster.lease_until, to_timestamp(0))),
  'sweep', cluster.sweep, 'inventory', cluster.inventory)`

/** A cluster as it was read. */
export function toCluster(stored: StoredCluster): ClusterRecord {
  const { createdAt, dialect, sessionAffinity, gateways, sweep } = stored
  const { reachableSince, unreachableSince, trouble, leaseUntil, ...shown } = stored
  const known = (name: string, value: string | number | null) =>
    value === null ? [] : [{ name, value: String(value) }]
  return {
    ...shown,
    reachable: reachable(stored),
    sweep: condition('Swept', sweep ?? noted('UNKNOWN', 'SweepPending', createdAt)),
    inventory: inventoryOf(stored),
    capabilities: [
      ...known('dialect', dialect),
      ...known('sessionAffinity', dialect === null ? null : String(sessionAffinity)),
      ...known('gateways', gateways),
    ],
  }
}

function reachable(stored: StoredCluster): StatusCondition {
  const { createdAt, owner, leaseUntil, reachableSince } = stored
  const { unreachableSince, trouble } = stored
  const type = 'Reachable'
  const against: Noted | null =
    trouble === null
      ? null
      : { status: 'FALSE', ...trouble, since: unreachableSince ?? trouble.since }
  // Whoever serves it next tells anew what stands against that.
  if (against !== null && (unreachableSince !== null || owner !== null))
    return condition(type, against)
  if (unreachableSince !== null)
    return condition(type, noted('FALSE', 'ClusterUnreachable', unreachableSince))
  if (owner === null) return condition(type, noted('UNKNOWN', 'NoWorker', leaseUntil ?? createdAt))
  if (stored.dialect === null) {
    // A worker that found none tells since when.
    return reachableSince === null
      ? condition(type, noted('UNKNOWN', 'Progressing', createdAt))
      : condition(type, noted('FALSE', 'SchemaMissing', reachableSince))
  }
  return condition(type, noted('TRUE', 'ClusterAnswers', reachableSince ?? createdAt))
}

/** A watch may be silent for minutes: what it told is not known to be so once the cluster is not heard of. */
function inventoryOf(stored: StoredCluster): StatusCondition {
  const type = 'InventoryComplete'
  const { inventory, createdAt } = stored
  const found = inventory ?? noted('UNKNOWN', 'SweepPending', createdAt)
  const reached = reachable(stored)
  const unheard = reached.reason === 'ClusterUnreachable' || reached.reason === 'NoWorker'
  return found.status === 'TRUE' && unheard
    ? { ...reached, type, status: 'UNKNOWN' }
    : condition(type, found)
}

const noted = (status: Noted['status'], reason: Reason, since: string): Noted => ({
  status,
  reason,
  message: REASONS[reason],
  since,
})

/** Clusters have no generations: their conditions are about what they are now. */
const condition = (type: string, { status, reason, message, since }: Noted): StatusCondition => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: since,
  observedGeneration: 0,
})
