import type { Store } from '../db/client.ts'

/** Rows that go in one statement: none holds locks or grows the log of the database for long. */
const BATCH = 5_000
/** What is left of a load balancer that is gone, for a cluster that was away the whole time. */
const TOMBSTONE_DAYS = 365

const OLD = {
  // Where the log begins now is kept, for cursors of before.
  event: `
WITH gone AS (DELETE FROM event WHERE seq IN (SELECT seq FROM event
  WHERE at < clock_timestamp() - make_interval(days => $1) ORDER BY at LIMIT ${BATCH}) RETURNING xid),
noted AS (UPDATE store SET removed_up_to = greatest(removed_up_to, (SELECT xid FROM gone ORDER BY xid DESC LIMIT 1))
  WHERE EXISTS (SELECT FROM gone))
SELECT FROM gone`,
  idempotency_key: `
DELETE FROM idempotency_key WHERE (project, mutation, key) IN (SELECT project, mutation, key FROM idempotency_key
  WHERE created_at < clock_timestamp() - make_interval(days => $1) ORDER BY created_at LIMIT ${BATCH})`,
  tombstone: `
DELETE FROM tombstone WHERE load_balancer_id IN (SELECT load_balancer_id FROM tombstone
  WHERE at < clock_timestamp() - make_interval(days => $1) LIMIT ${BATCH})`,
  worker: `
DELETE FROM worker WHERE seen_at < clock_timestamp() - make_interval(days => $1)`,
} as const

/**
 * Removes what is kept for a while only: events (90 days by default), idempotency keys (a day),
 * tombstones (a year). Safe to run in several processes. Answers how many rows went.
 */
export async function removeOld(
  store: Store,
  { eventDays, signal }: { eventDays: number; signal?: AbortSignal },
): Promise<number> {
  const days: Record<keyof typeof OLD, number> = {
    event: eventDays,
    idempotency_key: 1,
    tombstone: TOMBSTONE_DAYS,
    worker: 1,
  }
  let removed = 0
  for (const [table, sql] of Object.entries(OLD) as [keyof typeof OLD, string][]) {
    for (let rows = BATCH; rows === BATCH && !signal?.aborted; ) {
      rows = (await store.pool.query(sql, [days[table]])).rowCount ?? 0
      removed += rows
    }
  }
  return removed
}
