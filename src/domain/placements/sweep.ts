/** What the store says of what a cluster carries, and what it notes of what it never heard of. */
import type { Store } from '../../db/client.ts'
import { transaction } from '../../db/transaction.ts'
import { found } from '../../rules/findings.ts'
import { REASONS } from '../../rules/reasons.ts'
import type { Finding } from '../../rules/report.ts'
import { appendEvent, SYSTEM } from '../events/append.ts'
import { hint } from '../hints.ts'
import { refold } from '../loadBalancers/refold.ts'
import type { Ownership } from './ownership.ts'

export type Owner =
  | { fate: 'placed' | 'elsewhere'; rulesGeneration: number; storeBehind: boolean }
  /** It was deleted: there is a tombstone. */
  | { fate: 'gone' }
  /** The store never heard of it, as after a restored backup. */
  | { fate: 'unknown' }

/** What became of load balancers that a cluster shows traces of. */
export async function readOwners(
  store: Store,
  cluster: string,
  ids: readonly string[],
): Promise<Map<string, Owner>> {
  const { rows } = await store.pool.query<{
    id: string
    placed: boolean
    rulesGeneration: number | null
    gone: boolean
    storeBehind: boolean
  }>({
    name: 'read-owners',
    text: `
SELECT traced.id, placement.load_balancer_id IS NOT NULL AS placed,
  lb.rules_generation AS "rulesGeneration", tombstone.load_balancer_id IS NOT NULL AS gone,
  coalesce(placement.report #>> '{cluster,reason}' = 'StoreBehind', false) AS "storeBehind"
FROM unnest($2::uuid[]) AS traced (id)
LEFT JOIN load_balancer lb ON lb.id = traced.id
LEFT JOIN placement ON placement.load_balancer_id = traced.id AND placement.cluster_id = $1
LEFT JOIN tombstone ON tombstone.load_balancer_id = traced.id`,
    values: [cluster, ids],
  })
  return new Map(
    rows.map(({ id, placed, rulesGeneration, gone, storeBehind }): [string, Owner] => {
      if (rulesGeneration === null) return [id, { fate: gone ? 'gone' : 'unknown' }]
      return [id, { fate: placed ? 'placed' : 'elsewhere', rulesGeneration, storeBehind }]
    }),
  )
}

/**
 * Has everything withdrawn that a cluster may carry of load balancers which exist, but aren't placed
 * there: those named, and those with an open hold. They get a placement that isn't wanted.
 */
export async function withdrawStrays(
  store: Store,
  cluster: string,
  ids: readonly string[],
): Promise<number> {
  const { rowCount } = await store.pool.query(
    `INSERT INTO placement (load_balancer_id, cluster_id, placed, due)
     SELECT lb.id, $1, false, clock_timestamp() FROM load_balancer lb
     WHERE (lb.id = ANY ($2::uuid[]) OR lb.id IN (
       SELECT hold.load_balancer_id FROM hold WHERE hold.cluster_id = $1 AND hold.gone_at IS NULL))
       AND NOT EXISTS (SELECT FROM placement WHERE placement.load_balancer_id = lb.id AND placement.cluster_id = $1)
     ORDER BY lb.id ON CONFLICT DO NOTHING`,
    [cluster, ids],
  )
  if (rowCount !== null && rowCount > 0) hint(store)
  return rowCount ?? 0
}

export type StrayVip = { loadBalancer: string; vip: string; rule: string }

/** Holds the addresses of rules whose owner nobody knows: nobody is given them. */
export async function holdStrays(
  store: Store,
  { cluster, epoch }: Ownership,
  strays: readonly StrayVip[],
): Promise<void> {
  if (strays.length === 0) return
  await store.pool.query(
    `INSERT INTO hold (cluster_id, vip, load_balancer_id, rule_name)
     SELECT $1, stray.vip, stray."loadBalancer", stray.rule
     FROM jsonb_to_recordset($3) AS stray ("loadBalancer" uuid, vip inet, rule text)
     WHERE EXISTS (SELECT FROM cluster WHERE id = $1 AND lease_epoch = $2)
     ON CONFLICT (cluster_id, vip, load_balancer_id) DO UPDATE
     SET since = clock_timestamp(), gone_at = NULL WHERE hold.gone_at IS NOT NULL`,
    [cluster, epoch, JSON.stringify(strays)],
  )
}

/** The open holds in a cluster of load balancers that don't exist. */
export async function readStrayHolds(store: Store, cluster: string): Promise<StrayVip[]> {
  const { rows } = await store.pool.query<StrayVip>(
    `SELECT hold.load_balancer_id AS "loadBalancer", host(hold.vip) AS vip, hold.rule_name AS rule
     FROM hold LEFT JOIN load_balancer lb ON lb.id = hold.load_balancer_id
     WHERE hold.cluster_id = $1 AND hold.gone_at IS NULL AND lb.id IS NULL`,
    [cluster],
  )
  return rows
}

/** Nothing of these is left in the cluster: their addresses are free, and whoever waits is asked. */
export async function releaseStrays(
  store: Store,
  { cluster, epoch }: Ownership,
  strays: readonly StrayVip[],
): Promise<void> {
  if (strays.length === 0) return
  const { rows } = await store.pool.query<{ vip: string }>(
    `UPDATE hold SET gone_at = clock_timestamp()
     FROM jsonb_to_recordset($3) AS stray ("loadBalancer" uuid, vip inet)
     WHERE hold.cluster_id = $1 AND hold.vip = stray.vip AND hold.load_balancer_id = stray."loadBalancer"
       AND hold.gone_at IS NULL AND EXISTS (SELECT FROM cluster WHERE id = $1 AND lease_epoch = $2)
     RETURNING host(hold.vip) AS vip`,
    [cluster, epoch, JSON.stringify(strays)],
  )
  await store.pool.query(
    `UPDATE placement SET asked = asked + 1, due = clock_timestamp()
     WHERE (load_balancer_id, cluster_id) IN (
       SELECT waiting.load_balancer_id, waiting.cluster_id FROM placement waiting
       WHERE waiting.placed AND waiting.load_balancer_id IN (
         SELECT load_balancer_id FROM ipv6_block WHERE vip = ANY ($1::inet[])
         UNION SELECT load_balancer_id FROM ipv4_reservation WHERE address = ANY ($1::inet[]))
       ORDER BY waiting.load_balancer_id, waiting.cluster_id FOR UPDATE)`,
    [rows.map(({ vip }) => vip)],
  )
  hint(store)
}

/**
 * An operator decided that the store is right though a cluster carries a newer generation: it counts on
 * from there, so that its rules are written again.
 */
export async function countOnFrom(store: Store, loadBalancer: string, seen: number): Promise<void> {
  await transaction(store, async (client) => {
    const { rows } = await client.query<{
      project: string
      name: string
      version: number
      generation: number
    }>(
      'SELECT project, name, version, generation FROM load_balancer WHERE id = $1 FOR NO KEY UPDATE',
      [loadBalancer],
    )
    const [lb] = rows
    if (lb === undefined) return
    const [version, generation] = [Number(lb.version) + 1, Math.max(lb.generation, seen)]
    await client.query(
      `UPDATE load_balancer SET rules_generation = greatest(rules_generation, $2), generation = $3, version = $4 WHERE id = $1`,
      [loadBalancer, seen, generation, version],
    )
    await client.query(
      `UPDATE placement SET report = jsonb_set(report, '{cluster}', $2)
       WHERE load_balancer_id = $1 AND report #>> '{cluster,reason}' = 'StoreBehind'`,
      [loadBalancer, JSON.stringify(found('FALSE', 'Progressing', REASONS.Progressing))],
    )
    await client.query('SELECT ask_placements($1)', [loadBalancer])
    await appendEvent(client, {
      project: lb.project,
      objectKind: 'LoadBalancer',
      objectId: loadBalancer,
      version,
      generation,
      reason: 'LoadBalancerRestored',
      message: `Load balancer "${lb.name}" is as the database has it, though a cluster had a newer generation (${seen}).`,
      actor: SYSTEM,
    })
    await refold(client, loadBalancer, { announce: true })
  })
  hint(store)
}

/** How a sweep came out; `allowed`: all is done that an operator let it do. */
export async function recordSweep(
  store: Store,
  { cluster, epoch }: Ownership,
  came: { finding: Finding; gateways: number; allowed: boolean },
): Promise<void> {
  await store.pool.query(
    `UPDATE cluster SET gateways = $4, sweep = $3::jsonb || jsonb_build_object('since',
       CASE WHEN sweep ->> 'status' = $3::jsonb ->> 'status' THEN sweep ->> 'since' ELSE rfc3339(clock_timestamp()) END),
       sweep_allowed_at = CASE WHEN $5 THEN NULL ELSE sweep_allowed_at END
     WHERE id = $1 AND lease_epoch = $2`,
    [cluster, epoch, JSON.stringify(came.finding), came.gateways, came.allowed],
  )
}

/**
 * Whether an operator lets the next sweep take what has no owner. That holds for an hour: what isn't gone by
 * then is stuck, and what is found later may be something else.
 */
export async function isSweepAllowed(store: Store, cluster: string): Promise<boolean> {
  const { rows } = await store.pool.query(
    `SELECT FROM cluster WHERE id = $1 AND sweep_allowed_at > clock_timestamp() - interval '1 hour'`,
    [cluster],
  )
  return rows.length > 0
}
