import { alone } from '../../db/alone.ts'
import type { Store } from '../../db/client.ts'
import { refoldAlone } from '../placements/derive.ts'
import { readPlaced } from '../placements/wanted.ts'

/** Nothing is known of a cluster that nobody has served for so long (s). A dead worker is replaced in less. */
const UNTENDED_SECONDS = 20
/**
 * So many looks in a row have to find nobody: after an outage of the database every lease is long over,
 * and workers renew theirs as soon as they can.
 */
const LOOKS = 3

/** How many looks in a row found that nobody holds a lease, by cluster and the end of its last lease. */
export type Unheld = ReadonlyMap<string, number>

/**
 * Looks which clusters nobody serves, and marks those that nobody has served for long, since the end of
 * their last lease: until a worker says of one how it is, its load balancers say that nobody knows.
 * `before` is the answer of the look before. Writes nothing of a cluster that is marked already.
 */
export async function lookForUntended(store: Store, before: Unheld): Promise<Unheld> {
  const { rows } = await store.pool.query<{ id: string; until: string; long: boolean }>({
    name: 'read-unheld-clusters',
    text: `
SELECT id, rfc3339(lease_until) AS until,
  lease_until <= clock_timestamp() - make_interval(secs => $1) AS long
FROM cluster WHERE lease_until <= clock_timestamp() AND untended_since IS NULL AND forgotten_at IS NULL`,
    values: [UNTENDED_SECONDS],
  })
  const found = rows.map((row) => {
    const key = `${row.id} ${row.until}`
    return { ...row, key, looks: (before.get(key) ?? 0) + 1 }
  })
  const untended = found.filter(({ long, looks }) => long && looks >= LOOKS)
  if (untended.length > 0) {
    await store.pool.query(
      // That of one that was taken up again after it was forgotten is said to have ended when time began.
      `UPDATE cluster SET untended_told = false,
         untended_since = coalesce(nullif(lease_until, to_timestamp(0)), clock_timestamp())
       WHERE id = ANY ($1::uuid[]) AND untended_since IS NULL AND forgotten_at IS NULL
         AND lease_until <= clock_timestamp() - make_interval(secs => $2)`,
      [untended.map(({ id }) => id), UNTENDED_SECONDS],
    )
  }
  return new Map(found.map(({ key, looks }) => [key, looks]))
}

/**
 * Folds anew the load balancers of marked clusters, where that isn't done to its end yet and no other
 * process is at it. Answers how many there were.
 */
export async function tellUntended(store: Store, signal: AbortSignal): Promise<number> {
  if ((await readUntold(store)).length === 0) return 0
  return (await alone(store, 'tell of untended clusters', () => tell(store, signal))) ?? 0
}

async function tell(store: Store, signal: AbortSignal): Promise<number> {
  let told = 0
  for (const { id, since } of await readUntold(store)) {
    for (const loadBalancer of await readPlaced(store, id)) {
      if (signal.aborted) return told
      await refoldAlone(store, loadBalancer)
      told += 1
    }
    await store.pool.query(
      'UPDATE cluster SET untended_told = true WHERE id = $1 AND rfc3339(untended_since) = $2',
      [id, since],
    )
  }
  return told
}

async function readUntold(store: Store): Promise<{ id: string; since: string }[]> {
  const { rows } = await store.pool.query<{ id: string; since: string }>({
    name: 'read-untold-clusters',
    text: `
SELECT id, rfc3339(untended_since) AS since FROM cluster
WHERE untended_since IS NOT NULL AND NOT untended_told AND forgotten_at IS NULL ORDER BY name`,
  })
  return rows
}
