import type { Store } from '../../db/client.ts'
import { PROBE_COUNTS } from '../folding/probes.ts'
import { refoldAlone } from '../placements/derive.ts'

/** So many results are forgotten at a time. */
const AT_ONCE = 1_000

type Seen = { address: string; port: number; reachable: boolean }

/** The load balancers whose addresses some results are about, as SQL over `seen (address, port)`. */
const OF_RESULTS = `
JOIN LATERAL (
  SELECT block.load_balancer_id AS id FROM ipv6_block block WHERE block.vip = seen.address
  UNION ALL
  SELECT reservation.load_balancer_id FROM ipv4_reservation reservation WHERE reservation.address = seen.address
) holder ON true
JOIN load_balancer lb ON lb.id = holder.id AND lb.port = seen.port AND lb.protocol = 'TCP'
  AND lb.deleting_since IS NULL`

/**
 * Folds anew the status of load balancers that says something else than what was found. What it says
 * is compared, and not what was found before: so a process that died in between leaves nothing undone.
 */
export async function refoldContradicted(store: Store, seen: Seen[]): Promise<void> {
  const { rows } = await store.pool.query<{ id: string }>({
    name: 'read-contradicted',
    text: `
SELECT DISTINCT lb.id FROM jsonb_to_recordset($1) AS seen (address inet, port integer, reachable boolean)
${OF_RESULTS}
CROSS JOIN LATERAL (SELECT lb.status #> ARRAY['vips', host(seen.address), 'reachable'] AS said) now
WHERE NOT coalesce(CASE WHEN seen.reachable THEN said ->> 'reason' = 'Probed'
  ELSE said ->> 'status' <> 'TRUE' AND said ->> 'reason' <> 'VantagesDisagree' END, false)`,
    values: [JSON.stringify(seen)],
  })
  for (const { id } of rows) await refoldAlone(store, id)
}

/**
 * Forgets what vantage points found so long ago that it counts no more, once the status of the load
 * balancers that it was about is folded without it. Answers how many results were forgotten.
 */
export async function forgetReachability(store: Store, signal?: AbortSignal): Promise<number> {
  const { rows: old } = await store.pool.query<{ vantage: string; address: string; port: number }>(
    `SELECT vantage, host(address) AS address, port FROM reachability
     WHERE at <= clock_timestamp() - make_interval(secs => $1) ORDER BY at LIMIT $2`,
    [PROBE_COUNTS / 1_000, AT_ONCE],
  )
  if (old.length === 0) return 0
  const { rows } = await store.pool.query<{ id: string }>(
    `SELECT DISTINCT lb.id FROM jsonb_to_recordset($1) AS seen (address inet, port integer) ${OF_RESULTS}`,
    [JSON.stringify(old)],
  )
  for (const { id } of rows) {
    if (signal?.aborted) return 0
    await refoldAlone(store, id)
  }
  const { rowCount } = await store.pool.query(
    `DELETE FROM reachability USING jsonb_to_recordset($1) AS old (vantage text, address inet, port integer)
     WHERE reachability.vantage = old.vantage AND reachability.address = old.address AND reachability.port = old.port
       AND reachability.at <= clock_timestamp() - make_interval(secs => $2)`,
    [JSON.stringify(old), PROBE_COUNTS / 1_000],
  )
  return rowCount ?? 0
}
