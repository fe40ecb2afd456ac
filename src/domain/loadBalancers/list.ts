import type { Store } from '../../db/client.ts'
import { addLabelConditions, type LabelFilter } from '../labels.ts'
import {
  Conditions,
  containing,
  countRows,
  type Order,
  type PageRequest,
  readPage,
} from '../paging.ts'
import type { Page } from '../records.ts'
import type { Phase } from '../status.ts'

/** All given ones must match; within a list any. Ids are UUIDs. */
export type LoadBalancerFilter = {
  ids?: string[] | null
  nameContains?: string | null
  region?: string[] | null
  vpc?: string[] | null
  phase?: Phase[] | null
  address?: string | null
  labels?: LabelFilter[] | null
  project?: string[] | null
  /** The name of a cluster in which it is placed. */
  cluster?: string | null
}
export type LoadBalancerOrder = {
  field: 'NAME' | 'CREATED_AT' | 'UPDATED_AT'
  direction: 'ASC' | 'DESC'
}
type Selection = { project: string | null; filter?: LoadBalancerFilter | null }

const ORDERS = {
  NAME: { sql: 'lb.name', type: 'text' },
  CREATED_AT: { sql: 'lb.created_at', type: 'timestamptz' },
  UPDATED_AT: { sql: 'lb.updated_at', type: 'timestamptz' },
} as const satisfies Record<LoadBalancerOrder['field'], Pick<Order, 'sql' | 'type'>>

/** One page of ids; the records are read by `readLoadBalancers`. Oldest first where no order is given. */
export function listLoadBalancers(
  store: Store,
  selection: Selection & { order?: LoadBalancerOrder | null; page: PageRequest },
): Promise<Page<string>> {
  const order = selection.order ?? { field: 'CREATED_AT', direction: 'ASC' }
  return readPage<string>(
    store.pool,
    {
      from: 'load_balancer lb',
      item: 'lb.id',
      id: 'lb.id',
      order: { ...ORDERS[order.field], descending: order.direction === 'DESC' },
      conditions: conditionsOf(selection),
    },
    selection.page,
  )
}

/** How many load balancers the filter matches. */
export function countLoadBalancers(store: Store, selection: Selection): Promise<number> {
  return countRows(store.pool, { from: 'load_balancer lb', conditions: conditionsOf(selection) })
}

/** Which of some load balancers are placed in the cluster of that name. */
export async function placedIn(store: Store, cluster: string, ids: string[]): Promise<Set<string>> {
  const { rows } = await store.pool.query<{ id: string }>(
    `SELECT load_balancer_id AS id FROM placement JOIN cluster ON cluster.id = placement.cluster_id
     WHERE cluster.name = $1 AND placement.placed AND load_balancer_id = ANY ($2::uuid[])`,
    [cluster, ids],
  )
  return new Set(rows.map(({ id }) => id))
}

function conditionsOf({ project, filter }: Selection): Conditions {
  const conditions = new Conditions()
  if (project !== null) conditions.add('lb.project = ?', project)
  if (filter?.project) conditions.add('lb.project = ANY (?::text[])', filter.project)
  if (filter?.cluster) {
    conditions.add(
      `lb.id IN (SELECT load_balancer_id FROM placement JOIN cluster ON cluster.id = placement.cluster_id
        WHERE cluster.name = ? AND placement.placed)`,
      filter.cluster,
    )
  }
  if (filter?.ids) conditions.add('lb.id = ANY (?::uuid[])', filter.ids)
  if (filter?.nameContains) conditions.add('lb.name LIKE ?', containing(filter.nameContains))
  if (filter?.region) {
    conditions.add(
      'lb.region_id IN (SELECT id FROM region WHERE code = ANY (?::text[]))',
      filter.region,
    )
  }
  if (filter?.vpc) conditions.add('lb.vpc_id = ANY (?::uuid[])', filter.vpc)
  if (filter?.phase) conditions.add('lb.phase = ANY (?::text[])', filter.phase)
  if (filter?.address) {
    conditions.add(
      `lb.id IN (
        SELECT load_balancer_id FROM backend WHERE address = ?::inet
        UNION ALL SELECT load_balancer_id FROM ipv6_block WHERE vip = ?::inet
        UNION ALL SELECT load_balancer_id FROM ipv4_reservation WHERE address = ?::inet)`,
      filter.address,
      filter.address,
      filter.address,
    )
  }
  addLabelConditions(conditions, 'lb.labels', filter?.labels)
  return conditions
}
