import type { Store } from '../db/client.ts'
import { transaction } from '../db/transaction.ts'
import type { Reason } from '../rules/reasons.ts'
import type { Finding } from '../rules/report.ts'
import type { Dialect } from '../rules/wanted.ts'
import { hint } from './hints.ts'
import { refoldAlone } from './placements/derive.ts'
import type { Ownership } from './placements/ownership.ts'
import { readPlaced } from './placements/wanted.ts'

/** What was seen of a cluster's data plane; a change asks all its placements. */
export async function recordCapabilities(
  store: Store,
  { cluster, epoch }: Ownership,
  seen: { dialect: Dialect | undefined; sessionAffinity: boolean },
): Promise<void> {
  const changed = await transaction(store, async (client) => {
    const { rowCount } = await client.query(
      // Without a dialect it doesn't serve us: what it is told to be has changed then.
      `UPDATE cluster SET dialect = $2::text, session_affinity = $3,
       reachable_since = CASE WHEN (dialect IS NULL) = ($2::text IS NULL)
         THEN coalesce(reachable_since, clock_timestamp()) ELSE clock_timestamp() END
     WHERE id = $1 AND lease_epoch = $4 AND (dialect IS DISTINCT FROM $2::text OR session_affinity <> $3 OR reachable_since IS NULL)`,
      [cluster, seen.dialect ?? null, seen.sessionAffinity, epoch],
    )
    if (rowCount === 0) return false
    await client.query(
      'UPDATE placement SET asked = asked + 1, due = clock_timestamp() WHERE cluster_id = $1',
      [cluster],
    )
    return true
  })
  if (changed) hint(store)
}

/** What stands against a cluster's being served. */
export type Trouble = {
  reason: Reason
  message: string
  /** Then what it serves isn't known either. */
  blind: boolean
}

/**
 * What stands against a cluster's being served, or that nothing does; where that is news its load balancers
 * are folded anew. `again`: what failed before may have been recorded already, but not folded everywhere.
 */
export async function recordTrouble(
  store: Store,
  { cluster, epoch }: Ownership,
  trouble: Trouble | undefined,
  { again = false } = {},
): Promise<void> {
  const { rowCount } = await store.pool.query(
    trouble === undefined
      ? `UPDATE cluster SET unreachable_since = NULL, untended_since = NULL, trouble = NULL,
           reachable_since = clock_timestamp()
         WHERE id = $1 AND lease_epoch = $2
           AND (unreachable_since IS NOT NULL OR untended_since IS NOT NULL OR trouble IS NOT NULL)`
      : `UPDATE cluster SET
           unreachable_since = CASE WHEN $5
             THEN coalesce(unreachable_since, untended_since, clock_timestamp()) END,
           untended_since = NULL,
           trouble = jsonb_build_object('reason', $3::text, 'message', $4::text, 'since',
             coalesce(trouble ->> 'since', rfc3339(clock_timestamp())))
         WHERE id = $1 AND lease_epoch = $2
           AND (trouble ->> 'reason' IS DISTINCT FROM $3 OR (unreachable_since IS NOT NULL) <> $5
             OR untended_since IS NOT NULL)`,
    trouble === undefined
      ? [cluster, epoch]
      : [cluster, epoch, trouble.reason, trouble.message.slice(0, 1_000), trouble.blind],
  )
  if (rowCount === 0 && trouble !== undefined) {
    // In other words: of no consequence for the status of its load balancers.
    await store.pool.query(
      `UPDATE cluster SET trouble = jsonb_set(trouble, '{message}', to_jsonb($3::text))
       WHERE id = $1 AND lease_epoch = $2 AND trouble ->> 'message' <> $3`,
      [cluster, epoch, trouble.message.slice(0, 1_000)],
    )
  }
  if (rowCount === 0 && !again) return
  for (const id of await readPlaced(store, cluster)) await refoldAlone(store, id)
}

/**
 * What is known of a cluster's endpoints: TRUE, or why it may be out of date. Since when is kept while
 * the status stays.
 */
export async function recordInventory(
  store: Store,
  { cluster, epoch }: Ownership,
  finding: Finding,
): Promise<void> {
  await store.pool.query(
    `UPDATE cluster SET inventory = $2::jsonb || jsonb_build_object('since',
       CASE WHEN inventory ->> 'status' = $2::jsonb ->> 'status' THEN inventory ->> 'since'
         ELSE rfc3339(clock_timestamp()) END)
     WHERE id = $1 AND lease_epoch = $3 AND (inventory IS NULL OR NOT inventory @> $2::jsonb)`,
    [cluster, JSON.stringify(finding), epoch],
  )
}

/**
 * An operator says that what vanished from a cluster's inventory is to be believed; its worker takes
 * that up within seconds.
 */
export async function acceptInventory(store: Store, cluster: string): Promise<void> {
  await store.pool.query('UPDATE cluster SET inventory_accepted = true WHERE id = $1', [cluster])
  hint(store)
}

/** Takes up what an operator said, once. */
export async function takeInventoryAcceptance(store: Store, cluster: string): Promise<boolean> {
  const { rowCount } = await store.pool.query(
    'UPDATE cluster SET inventory_accepted = false WHERE id = $1 AND inventory_accepted',
    [cluster],
  )
  return rowCount === 1
}
