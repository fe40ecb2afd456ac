import { isDeepStrictEqual } from 'node:util'
import { appendEvent, fieldChanges, SYSTEM } from '../events/append.ts'
import type { Querier } from '../querier.ts'
import type { ReservationRecord, StatusCondition } from '../records.ts'
import { foldBindings } from './binding.ts'

type Row = {
  id: string
  project: string
  name: string
  address: string
  version: number
  generation: number
  state: ReservationRecord['state']
  bindings: ReservationRecord['bindings']
  holder: string | null
  provisioned: StatusCondition | null
  leaving: string[]
  now: string
}

const READ = (where: string, name: string) => ({
  name,
  text: `
SELECT reservation.id, reservation.project, reservation.name, host(reservation.address) AS address,
  reservation.version, reservation.generation, reservation.state, reservation.bindings,
  reservation.load_balancer_id AS holder,
  lb.status -> 'vips' -> host(reservation.address) -> 'provisioned' AS provisioned,
  ARRAY(SELECT DISTINCT hold.load_balancer_id::text FROM hold WHERE hold.vip = reservation.address
    AND hold.gone_at IS NULL AND hold.load_balancer_id IS DISTINCT FROM reservation.load_balancer_id
    ORDER BY 1) AS leaving,
  rfc3339(clock_timestamp()) AS now
FROM ipv4_reservation reservation LEFT JOIN load_balancer lb ON lb.id = reservation.load_balancer_id
WHERE ${where} ORDER BY reservation.id`,
})
const WHOSE = `reservation.load_balancer_id = ANY ($1::uuid[])
   OR reservation.address IN (SELECT hold.vip FROM hold WHERE hold.load_balancer_id = ANY ($1::uuid[]))`
const ONE = 'reservation.id = $1'
// Locked in a statement of its own: one that waits for a lock reads what was true before.
const LOCK = (where: string, name: string) => ({
  name,
  text: `SELECT FROM ipv4_reservation reservation WHERE ${where} ORDER BY reservation.id FOR UPDATE`,
})
const OF_LOAD_BALANCERS = {
  lock: LOCK(WHOSE, 'lock-reservations-of-load-balancers'),
  read: READ(WHOSE, 'reservations-of-load-balancers'),
}
const OF_ID = {
  lock: LOCK(ONE, 'lock-reservation-to-fold'),
  read: READ(ONE, 'reservation-to-fold'),
}

/**
 * Folds again every reservation that load balancers have, or had and may still carry. All of them together:
 * one load balancer after the other would lock them in another order than everybody else.
 */
export async function refoldReservations(
  client: Querier,
  loadBalancers: readonly string[],
): Promise<void> {
  if (loadBalancers.length > 0) await refold(client, OF_LOAD_BALANCERS, loadBalancers)
}

/** Folds one reservation again. */
export function refoldReservation(client: Querier, id: string): Promise<void> {
  return refold(client, OF_ID, id)
}

async function refold(
  client: Querier,
  { lock, read }: typeof OF_ID,
  which: string | readonly string[],
): Promise<void> {
  const locked = await client.query({ ...lock, values: [which] })
  if (locked.rows.length === 0) return
  const { rows } = await client.query<Row>({ ...read, values: [which] })
  for (const row of rows) await write(client, row)
}

/** Writes what changed, with its event; nothing where nothing did. */
async function write(client: Querier, row: Row): Promise<void> {
  const folded = foldBindings({
    now: row.now,
    holder:
      row.holder === null
        ? null
        : {
            id: row.holder,
            provisioned: row.provisioned ?? undefined,
          },
    leaving: row.leaving,
    previous: row.bindings,
  })
  if (folded.state === row.state && isDeepStrictEqual(folded.bindings, row.bindings)) return
  const version = row.version + 1
  await client.query({
    name: 'write-reservation-bindings',
    text: 'UPDATE ipv4_reservation SET state = $2, bindings = $3, version = $4 WHERE id = $1',
    values: [row.id, folded.state, JSON.stringify(folded.bindings), version],
  })
  await appendEvent(client, {
    project: row.project,
    objectKind: 'IPv4Reservation',
    objectId: row.id,
    version,
    generation: row.generation,
    reason: 'IPv4ReservationStateChanged',
    message: `IPv4 reservation "${row.name}" (${row.address}) is ${folded.state}.`,
    actor: SYSTEM,
    changes: fieldChanges({ state: row.state }, { state: folded.state }),
  })
}
