import type { PoolClient } from 'pg'
import type { Store } from '../../db/client.ts'
import { transaction } from '../../db/transaction.ts'
import type { PlacementReport } from '../../rules/report.ts'
import { hint } from '../hints.ts'
import { finishDeletion } from '../loadBalancers/finish.ts'
import { refold } from '../loadBalancers/refold.ts'
import { refoldReservations } from '../reservations/refold.ts'
import { demandEpoch, type Ownership } from './ownership.ts'

/**
 * Takes in what a cluster says of a load balancer: the report itself (never an older one over a
 * newer; one that tells nothing new writes nothing), that everything asked for up to its number was applied, the VIPs of which nothing is left
 * there; folds it all into the status. Ends the placement once it isn't wanted any more and nothing
 * is left, and the load balancer with its last one where it is being deleted. Answers whether there is
 * no such placement any more.
 */
export async function reportPlacement(
  store: Store,
  owner: Ownership,
  loadBalancer: string,
  told: { report: PlacementReport; applied: boolean; gone: string[] },
): Promise<boolean> {
  const ended = await transaction(store, async (client) => {
    const locked = await client.query<{ deleting: boolean }>({
      name: 'lock-load-balancer-for-report',
      text: `
SELECT deleting_since IS NOT NULL AS deleting FROM load_balancer WHERE id = $1 FOR NO KEY UPDATE`,
      values: [loadBalancer],
    })
    const [state] = locked.rows
    if (state === undefined) return true
    await demandEpoch(client, owner)
    const { report, applied, gone } = told
    if (gone.length > 0) await lockAround(client, loadBalancer, gone)
    const known = await client.query<{ placed: boolean }>({
      name: 'write-report',
      text: `
WITH before AS (
  SELECT placed, newer,
    newer AND (report IS DISTINCT FROM $3::jsonb OR ($6 AND settled_generation < $5))
      OR $7 AND (applied < $4 OR attempts > 0 OR last_error IS NOT NULL
        OR asked = $4 AND (due IS NOT NULL OR trace IS NOT NULL)) AS news
  FROM placement CROSS JOIN LATERAL (SELECT coalesce((report ->> 'asked')::bigint, 0) <= $4 AS newer) known
  WHERE load_balancer_id = $1 AND cluster_id = $2),
written AS (UPDATE placement SET
  report = CASE WHEN newer THEN $3 ELSE report END,
  reported_at = CASE WHEN newer THEN clock_timestamp() ELSE reported_at END,
  settled_generation = CASE WHEN newer AND $6 THEN greatest(settled_generation, $5) ELSE settled_generation END,
  applied = CASE WHEN $7 THEN greatest(applied, $4) ELSE applied END,
  due = CASE WHEN $7 AND asked = $4 THEN NULL ELSE due END,
  attempts = CASE WHEN $7 THEN 0 ELSE attempts END,
  last_error = CASE WHEN $7 THEN NULL ELSE last_error END,
  trace = CASE WHEN $7 AND asked = $4 THEN NULL ELSE trace END
FROM before WHERE news AND load_balancer_id = $1 AND cluster_id = $2)
SELECT placed FROM before`,
      values: [
        loadBalancer,
        owner.cluster,
        JSON.stringify(report),
        report.asked,
        report.generation,
        report.inEffect,
        applied,
      ],
    })
    const closed = gone.length > 0 && (await closeHolds(client, owner, loadBalancer, gone))
    // Whoever changes where it is placed, or has it deleted, locks its row first: as it was read, it is.
    const [placement] = known.rows
    const over =
      placement === undefined ||
      (!placement.placed && (await endPlacement(client, owner, loadBalancer)))
    await refold(client, loadBalancer, { announce: true })
    if (closed) await refoldReservations(client, loadBalancer)
    if (state.deleting) await finishDeletion(client, loadBalancer)
    return over
  })
  hint(store)
  return ended
}

/** Ends one that isn't wanted any more, once nothing is left of it; answers whether that is so. */
async function endPlacement(
  client: PoolClient,
  owner: Ownership,
  loadBalancer: string,
): Promise<boolean> {
  const { rowCount } = await client.query({
    name: 'end-placement',
    text: `
DELETE FROM placement WHERE load_balancer_id = $1 AND cluster_id = $2 AND NOT placed
  AND (report ->> 'asked')::bigint = asked AND (report ->> 'inEffect')::boolean
  AND NOT EXISTS (SELECT FROM hold WHERE hold.cluster_id = $2 AND hold.load_balancer_id = $1 AND hold.gone_at IS NULL)`,
    values: [loadBalancer, owner.cluster],
  })
  return rowCount === 1
}

/**
 * Locks, in the order that is always kept, the reservations of addresses that are let go of and every
 * placement that is then to be asked. Who binds one of them meanwhile waits for the hold to be closed,
 * or is found here.
 */
async function lockAround(
  client: PoolClient,
  loadBalancer: string,
  addresses: string[],
): Promise<void> {
  await client.query({
    name: 'lock-reservations-of-report',
    text: 'SELECT FROM ipv4_reservation WHERE address = ANY ($1::inet[]) ORDER BY id FOR UPDATE',
    values: [addresses],
  })
  await client.query({
    name: 'lock-placements-of-report',
    text: `
SELECT FROM placement WHERE load_balancer_id = $1 OR load_balancer_id IN (
  SELECT load_balancer_id FROM ipv4_reservation WHERE address = ANY ($2::inet[]))
ORDER BY load_balancer_id, cluster_id FOR NO KEY UPDATE`,
    values: [loadBalancer, addresses],
  })
}

/** Closes holds, and asks those who waited for one of the addresses. */
async function closeHolds(
  client: PoolClient,
  owner: Ownership,
  loadBalancer: string,
  gone: string[],
): Promise<boolean> {
  const { rows } = await client.query({
    name: 'close-holds',
    text: `
UPDATE hold SET gone_at = clock_timestamp()
WHERE cluster_id = $1 AND load_balancer_id = $2 AND vip = ANY ($3::inet[]) AND gone_at IS NULL
RETURNING vip`,
    values: [owner.cluster, loadBalancer, gone],
  })
  if (rows.length === 0) return false
  await client.query({
    name: 'ask-who-waited',
    text: `
UPDATE placement SET asked = asked + 1, due = clock_timestamp()
WHERE placed AND load_balancer_id IN (
  SELECT load_balancer_id FROM ipv4_reservation
  WHERE address = ANY ($1::inet[]) AND load_balancer_id <> $2)`,
    values: [gone, loadBalancer],
  })
  return true
}

/**
 * Puts a placement off after a failure: due again after `delaySeconds`, unless it was asked for anew
 * meanwhile.
 */
export async function postponePlacement(
  store: Store,
  owner: Ownership,
  loadBalancer: string,
  failure: { asked: number; message: string; delaySeconds: number },
): Promise<void> {
  await store.pool.query({
    name: 'postpone-placement',
    text: `
UPDATE placement SET attempts = attempts + 1, last_error = $4,
  due = CASE WHEN asked = $3 THEN clock_timestamp() + make_interval(secs => $5) ELSE due END
WHERE load_balancer_id = $1 AND cluster_id = $2
  AND EXISTS (SELECT FROM cluster WHERE cluster.id = $2 AND cluster.lease_epoch = $6)`,
    values: [
      loadBalancer,
      owner.cluster,
      failure.asked,
      failure.message.slice(0, 1_000),
      failure.delaySeconds,
      owner.epoch,
    ],
  })
}

/** Makes a placement due, as for drift that was seen: what should be there isn't. */
export async function askPlacement(
  store: Store,
  cluster: string,
  loadBalancer: string,
): Promise<void> {
  await store.pool.query({
    name: 'ask-placement',
    text: `
UPDATE placement SET asked = asked + 1, due = clock_timestamp()
WHERE load_balancer_id = $1 AND cluster_id = $2`,
    values: [loadBalancer, cluster],
  })
}
