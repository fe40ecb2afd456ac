import type { Store } from '../../db/client.ts'
import { transaction } from '../../db/transaction.ts'
import { hint } from '../hints.ts'
import { finishDeletion } from '../loadBalancers/finish.ts'
import { refold } from '../loadBalancers/refold.ts'

/**
 * Derives a load balancer's placements anew after something else than a tenant's change (inventory,
 * a cluster's mode), and folds its status.
 */
export async function rederive(store: Store, loadBalancer: string): Promise<void> {
  await transaction(store, async (client) => {
    const locked = await client.query('SELECT FROM load_balancer WHERE id = $1 FOR NO KEY UPDATE', [
      loadBalancer,
    ])
    if (locked.rows.length === 0) return
    await client.query('SELECT ask_rivals($1), ask_placements($1)', [loadBalancer])
    await refold(client, loadBalancer, { announce: true })
    await finishDeletion(client, loadBalancer)
  })
  hint(store)
}

/** Folds a load balancer's status anew, as when one of its clusters was lost or came back. */
export async function refoldAlone(store: Store, loadBalancer: string): Promise<void> {
  await transaction(store, async (client) => {
    const locked = await client.query('SELECT FROM load_balancer WHERE id = $1 FOR NO KEY UPDATE', [
      loadBalancer,
    ])
    if (locked.rows.length === 0) return
    await refold(client, loadBalancer, { announce: true })
    await finishDeletion(client, loadBalancer)
  })
  hint(store)
}

/**
 * Finds load balancers whose placements aren't those that follow from backends and inventory (a
 * create that raced an inventory change), and derives them anew. Answers how many there were.
 */
export async function healPlacements(store: Store): Promise<number> {
  const { rows } = await store.pool.query<{ id: string }>(`
SELECT DISTINCT id FROM (
  SELECT derived.load_balancer_id AS id FROM (
    SELECT DISTINCT lb.id AS load_balancer_id, cluster.id AS cluster_id
    FROM load_balancer lb
    JOIN backend ON backend.load_balancer_id = lb.id AND backend.admin_state = 'ENABLED'
    JOIN endpoint ON endpoint.vpc_id = lb.vpc_id AND endpoint.address = backend.address
    JOIN cluster ON cluster.id = endpoint.cluster_id AND cluster.region_id = lb.region_id
    WHERE lb.deleting_since IS NULL) derived
  FULL JOIN (SELECT load_balancer_id, cluster_id FROM placement WHERE placed) stored
    ON stored.load_balancer_id = derived.load_balancer_id AND stored.cluster_id = derived.cluster_id
  WHERE stored.load_balancer_id IS NULL
  UNION ALL
  SELECT stored.load_balancer_id FROM placement stored
  WHERE stored.placed AND NOT stored.cluster_id IN (SELECT clusters_of(stored.load_balancer_id))
) AS differing WHERE id IS NOT NULL`)
  for (const { id } of rows) await rederive(store, id)
  return rows.length
}
