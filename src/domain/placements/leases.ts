import type { Store } from '../../db/client.ts'

/** How long a cluster's owner may serve it without saying that it lives, in seconds. */
export const LEASE_SECONDS = 10

/** A cluster that this process owns for a while. */
export type Lease = {
  cluster: string
  name: string
  context: string
  epoch: number
  servesIPv4: boolean
  hasProber: boolean
}

const LEASE = `cluster.id AS cluster, cluster.name, cluster.context, cluster.lease_epoch AS epoch,
  cluster.serves_ipv4 AS "servesIPv4", cluster.has_prober AS "hasProber"`

/**
 * Renews what this owner has, and takes over clusters that nobody serves. Answers all that it owns
 * now: what isn't in the answer any more was lost.
 */
export async function renewLeases(store: Store, owner: string): Promise<Lease[]> {
  const { rows } = await store.pool.query<Lease>({
    name: 'renew-leases',
    text: `
WITH taken AS (
  UPDATE cluster SET
    lease_epoch = CASE WHEN owner = $1 AND lease_until > clock_timestamp() THEN lease_epoch ELSE lease_epoch + 1 END,
    owner = $1, lease_until = clock_timestamp() + make_interval(secs => $2)
  WHERE id IN (
    SELECT id FROM cluster
    WHERE (owner = $1 AND lease_until > clock_timestamp()) OR lease_until IS NULL OR lease_until <= clock_timestamp()
    ORDER BY id FOR UPDATE SKIP LOCKED)
  RETURNING *)
SELECT ${LEASE} FROM taken AS cluster ORDER BY cluster.name`,
    values: [owner, LEASE_SECONDS],
  })
  return rows
}

/** Gives up all that an owner has, so that others needn't wait for it to run out. */
export async function releaseLeases(store: Store, owner: string): Promise<void> {
  await store.pool.query('UPDATE cluster SET lease_until = clock_timestamp() WHERE owner = $1', [
    owner,
  ])
}
