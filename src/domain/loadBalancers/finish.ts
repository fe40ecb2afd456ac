import { appendEvent, SYSTEM } from '../events/append.ts'
import type { Querier } from '../querier.ts'
import { refoldReservations } from '../reservations/refold.ts'
import type { StoredLoadBalancer } from './stored.ts'

/**
 * Ends a deletion once no cluster can carry anything of the load balancer any more: its IPv6 block
 * cools down, its rows go, a tombstone stays for the sweep, and the event of its end holds it as it
 * was last. Does nothing to one that isn't being deleted, that still has a placement, or while a
 * hold is open. The caller has locked its row.
 */
export async function finishDeletion(client: Querier, id: string): Promise<void> {
  const gone = await client.query({
    name: 'is-gone-everywhere',
    text: `
SELECT FROM load_balancer lb WHERE lb.id = $1 AND lb.deleting_since IS NOT NULL
  AND NOT EXISTS (SELECT FROM placement WHERE placement.load_balancer_id = lb.id)
  AND NOT EXISTS (SELECT FROM hold WHERE hold.load_balancer_id = lb.id AND hold.gone_at IS NULL)`,
    values: [id],
  })
  if (gone.rows.length === 0) return
  await refoldReservations(client, [id])
  const { rows } = await client.query<{ record: StoredLoadBalancer }>(
    'SELECT record FROM load_balancers_json(ARRAY[$1::uuid], NULL, true)',
    [id],
  )
  const last = rows[0]?.record
  if (last === undefined) return
  await client.query(
    `INSERT INTO tombstone (load_balancer_id, rule_names)
     SELECT $1, ARRAY(SELECT DISTINCT rule_name FROM hold WHERE load_balancer_id = $1)`,
    [id],
  )
  await client.query(
    `UPDATE ipv6_block SET load_balancer_id = NULL,
       reusable_at = clock_timestamp() + make_interval(secs => pool.cool_down_seconds)
     FROM address_pool pool WHERE pool.id = ipv6_block.pool_id AND ipv6_block.load_balancer_id = $1`,
    [id],
  )
  await client.query('DELETE FROM hold WHERE load_balancer_id = $1', [id])
  await client.query(
    'DELETE FROM backend_probe WHERE backend_id IN (SELECT id FROM backend WHERE load_balancer_id = $1)',
    [id],
  )
  await client.query('DELETE FROM load_balancer WHERE id = $1', [id])
  const version = last.version + 1
  await appendEvent(client, {
    project: last.project,
    objectKind: 'LoadBalancer',
    objectId: id,
    version,
    generation: last.generation,
    reason: 'LoadBalancerDeleted',
    message: `Load balancer "${last.name}" is gone from everywhere.`,
    actor: SYSTEM,
    object: { ...last, version },
  })
}
