import type { Store } from '../../db/client.ts'
import { transaction } from '../../db/transaction.ts'
import { hint } from '../hints.ts'
import { finishDeletion } from '../loadBalancers/finish.ts'
import { refold } from '../loadBalancers/refold.ts'

/**
 * Derives a load balancer's placements anew after something else than a tenant's change (inventory,
 * a cluster's mode), and folds its status. `rest`: how long (ms) it rests afterwards.
 */
export function rederive(store: Store, loadBalancer: string, rest = 0): Promise<void> {
  return settle(store, loadBalancer, { placements: true, rest })
}

/** Folds a load balancer's status anew, as when one of its clusters was lost or came back. */
export function refoldAlone(store: Store, loadBalancer: string): Promise<void> {
  return settle(store, loadBalancer, { placements: false, rest: 0 })
}

async function settle(
  store: Store,
  loadBalancer: string,
  { placements, rest }: { placements: boolean; rest: number },
): Promise<void> {
  await transaction(store, async (client) => {
    if (placements) {
      await client.query({
        name: 'lock-vpc-to-derive',
        text: `
SELECT FROM vpc WHERE id = (SELECT vpc_id FROM load_balancer WHERE id = $1) FOR NO KEY UPDATE`,
        values: [loadBalancer],
      })
    }
    const locked = await client.query({
      name: 'lock-load-balancer-to-fold',
      text: 'SELECT FROM load_balancer WHERE id = $1 FOR NO KEY UPDATE',
      values: [loadBalancer],
    })
    if (locked.rows.length === 0) return
    if (rest > 0) {
      await client.query({
        name: 'let-load-balancer-rest',
        text: `
UPDATE load_balancer SET rests_until = clock_timestamp() + $2 * interval '1 millisecond' WHERE id = $1`,
        values: [loadBalancer, rest],
      })
    }
    if (placements) await client.query('SELECT ask_rivals($1), ask_placements($1)', [loadBalancer])
    await refold(client, loadBalancer, { announce: true })
    await finishDeletion(client, loadBalancer)
  })
  hint(store)
}

/** So many load balancers are compared by one statement, which then ends well before its deadline. */
const AT_ONCE = 5_000

/**
 * Finds load balancers whose placements aren't those that follow from backends and inventory (a
 * create that raced an inventory change), and derives them anew. Answers how many there were.
 */
export async function healPlacements(
  store: Store,
  { atOnce = AT_ONCE, signal }: { atOnce?: number; signal?: AbortSignal } = {},
): Promise<number> {
  let healed = 0
  let last = '00000000-0000-0000-0000-000000000000'
  while (!signal?.aborted) {
    const { rows: some } = await store.pool.query<{ id: string }>(
      'SELECT id FROM load_balancer WHERE id > $1 ORDER BY id LIMIT $2',
      [last, atOnce],
    )
    const ids = some.map(({ id }) => id)
    healed += await healSome(store, ids, signal)
    if (ids.length < atOnce) break
    last = ids.at(-1) ?? last
  }
  return healed
}

async function healSome(store: Store, ids: string[], signal?: AbortSignal): Promise<number> {
  const { rows } = await store.pool.query<{ id: string }>(
    `
SELECT derived.load_balancer_id AS id FROM (
  SELECT DISTINCT lb.id AS load_balancer_id, cluster.id AS cluster_id
  FROM load_balancer lb
  JOIN backend ON backend.load_balancer_id = lb.id AND backend.admin_state = 'ENABLED'
  JOIN endpoint ON endpoint.vpc_id = lb.vpc_id AND endpoint.address = backend.address
  -- Only these gain placements: see places_of.
  JOIN cluster ON cluster.id = endpoint.cluster_id AND cluster.region_id = lb.region_id
    AND cluster.mode = 'ACTIVE' AND cluster.forgotten_at IS NULL
  WHERE lb.id = ANY ($1::uuid[]) AND lb.deleting_since IS NULL) derived
LEFT JOIN placement stored ON stored.placed AND stored.load_balancer_id = derived.load_balancer_id
  AND stored.cluster_id = derived.cluster_id
WHERE stored.load_balancer_id IS NULL
UNION
SELECT stored.load_balancer_id FROM placement stored
JOIN load_balancer lb ON lb.id = stored.load_balancer_id
JOIN cluster ON cluster.id = stored.cluster_id
WHERE lb.id = ANY ($1::uuid[]) AND stored.placed AND (
  NOT EXISTS (SELECT FROM backend JOIN endpoint ON endpoint.vpc_id = lb.vpc_id
      AND endpoint.address = backend.address AND endpoint.cluster_id = stored.cluster_id
    WHERE backend.load_balancer_id = lb.id AND backend.admin_state = 'ENABLED')
  OR (cluster.mode = 'DRAINED' AND NOT stored.cluster_id IN (SELECT clusters_of(lb.id))))`,
    [ids],
  )
  return rederiveAll(store, rows, signal)
}

/** Until it is called off: what is left is found by the next who looks. Answers how many there were. */
async function rederiveAll(
  store: Store,
  found: { id: string }[],
  signal: AbortSignal | undefined,
): Promise<number> {
  let derived = 0
  for (const { id } of found) {
    if (signal?.aborted) break
    await rederive(store, id)
    derived += 1
  }
  return derived
}

/**
 * Derives anew those load balancers of drained clusters that another cluster serves by now, so that
 * their rules leave. Answers how many there were.
 */
export async function advanceDraining(store: Store, signal?: AbortSignal): Promise<number> {
  const { rows } = await store.pool.query<{ id: string }>({
    name: 'read-leaving',
    // What is in effect nowhere else can't leave. Found out first: clusters_of takes long for a hundred thousand.
    text: `
WITH leaving AS MATERIALIZED (
  SELECT stored.load_balancer_id AS id, cluster.id AS cluster FROM cluster
  JOIN placement stored ON stored.cluster_id = cluster.id AND stored.placed
  WHERE cluster.mode = 'DRAINED' AND cluster.forgotten_at IS NULL
    -- Known before placements are gone through: as a rule no cluster is drained.
    AND EXISTS (SELECT FROM cluster WHERE mode = 'DRAINED' AND forgotten_at IS NULL)
    AND EXISTS (SELECT FROM placement other
      JOIN cluster taker ON taker.id = other.cluster_id AND taker.mode <> 'DRAINED' AND taker.unreachable_since IS NULL
      WHERE other.load_balancer_id = stored.load_balancer_id AND other.placed
        AND (other.report ->> 'inEffect')::boolean))
SELECT id FROM leaving WHERE NOT cluster IN (SELECT clusters_of(id)) LIMIT 500`,
  })
  return rederiveAll(store, rows, signal)
}
