import type { Store } from '../../db/client.ts'

/** How long a cluster's owner may serve it without saying that it lives, in seconds. Of the store's clock. */
export const LEASE_SECONDS = 10

/** A cluster that this process owns for a while. */
export type Lease = {
  cluster: string
  name: string
  context: string
  epoch: number
  servesIPv4: boolean
  hasProber: boolean
  /** An operator said that what vanished from its inventory is to be believed. */
  inventoryAccepted: boolean
  /** An operator lets the next sweep take what has no owner. */
  sweepAllowed: boolean
  /**
   * The owner before didn't give it up: a call of its may still be under way. Told once, when it is taken.
   */
  tookOver: boolean
}

const LEASE = `cluster.id AS cluster, cluster.name, cluster.context, cluster.lease_epoch AS epoch,
  cluster.serves_ipv4 AS "servesIPv4", cluster.has_prober AS "hasProber",
  cluster.inventory_accepted AS "inventoryAccepted",
  coalesce(cluster.sweep_allowed_at > clock_timestamp() - interval '1 hour', false) AS "sweepAllowed"`

/**
 * Renews what this owner has, and takes over clusters that nobody serves, up to its share among the
 * workers that live. Answers all that it owns now (what isn't in the answer any more was lost), and how
 * many of them are more than its share.
 */
export async function renewLeases(
  store: Store,
  owner: string,
): Promise<{ leases: Lease[]; surplus: number }> {
  const share = await readShare(store, owner)
  // Not by SKIP LOCKED, as below: a report that holds the row must not look like a lost lease.
  const { rows: renewed } = await store.pool.query<Lease>({
    name: 'renew-leases',
    text: `
UPDATE cluster SET lease_until = clock_timestamp() + make_interval(secs => $2)
WHERE owner = $1 AND lease_until > clock_timestamp() RETURNING ${LEASE}, false AS "tookOver"`,
    values: [owner, LEASE_SECONDS],
  })
  const { rows: taken } = await store.pool.query<Lease>({
    name: 'take-leases',
    text: `
WITH free AS (
  SELECT id, owner IS NOT NULL AS "tookOver" FROM cluster
  WHERE lease_until IS NULL OR lease_until <= clock_timestamp()
  ORDER BY id LIMIT $3 FOR UPDATE SKIP LOCKED)
UPDATE cluster SET lease_epoch = lease_epoch + 1, owner = $1,
  lease_until = clock_timestamp() + make_interval(secs => $2)
FROM free WHERE cluster.id = free.id RETURNING ${LEASE}, free."tookOver"`,
    values: [owner, LEASE_SECONDS, Math.max(0, share - renewed.length)],
  })
  const leases = [...renewed, ...taken].sort((a, b) => (a.name < b.name ? -1 : 1))
  return { leases, surplus: Math.max(0, leases.length - share) }
}

/** How many clusters each of the workers that were seen lately should serve. */
async function readShare(store: Store, owner: string): Promise<number> {
  const { rows } = await store.pool.query<{ share: number }>({
    name: 'read-share',
    text: `
WITH alive AS (
  INSERT INTO worker (name, seen_at) VALUES ($1, clock_timestamp())
  ON CONFLICT (name) DO UPDATE SET seen_at = excluded.seen_at RETURNING name)
SELECT ceil((SELECT count(*) FROM cluster) / (1 + (SELECT count(*) FROM worker
  WHERE name <> $1 AND seen_at > clock_timestamp() - make_interval(secs => $2)))::numeric)::integer AS share
FROM alive`,
    values: [owner, LEASE_SECONDS],
  })
  return rows[0]?.share ?? 0
}

/** Gives up one cluster, in order: nothing of its owner is under way there any more. */
export async function releaseLease(store: Store, { cluster, epoch }: Lease): Promise<void> {
  await store.pool.query(
    `UPDATE cluster SET owner = NULL, lease_until = clock_timestamp()
     WHERE id = $1 AND lease_epoch = $2`,
    [cluster, epoch],
  )
}

/** A worker process ends. */
export async function forgetWorker(store: Store, owner: string): Promise<void> {
  await store.pool.query('DELETE FROM worker WHERE name = $1', [owner])
}
