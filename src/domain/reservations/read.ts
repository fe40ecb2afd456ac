import type { Store } from '../../db/client.ts'
import { addLabelConditions, type LabelFilter } from '../labels.ts'
import { Conditions, containing, countRows, type PageRequest, readPage } from '../paging.ts'
import type { Querier } from '../querier.ts'
import type { IPv4ReservationState, Page, ReservationRecord } from '../records.ts'
import { regionOf } from '../regions.ts'

/** All given ones must match; within a list any. Ids are UUIDs. */
export type ReservationFilter = {
  ids?: string[] | null
  nameContains?: string | null
  region?: string[] | null
  address?: string | null
  state?: IPv4ReservationState[] | null
  bound?: boolean | null
  labels?: LabelFilter[] | null
  project?: string[] | null
}
type Selection = { project: string | null; filter?: ReservationFilter | null }
type Stored = Omit<ReservationRecord, 'region'> & { regionId: string }

const READ = {
  name: 'read-reservations',
  text: `
SELECT id, version, project, name, display_name AS "displayName", description, labels,
  region_id AS "regionId", host(address) AS address, state, bindings,
  deletion_protection AS "deletionProtection", generation,
  rfc3339(created_at) AS "createdAt", rfc3339(updated_at) AS "updatedAt"
FROM ipv4_reservation WHERE id = ANY ($1::uuid[]) AND ($2::text IS NULL OR project = $2)`,
}

/** Whole reservations with their bindings; see `readLoadBalancers`. */
export async function readReservations(
  store: Store,
  { project, ids }: { project: string | null; ids: string[] },
  client: Querier = store.pool,
): Promise<Map<string, ReservationRecord>> {
  const { rows } = await client.query<Stored>({ ...READ, values: [ids, project] })
  const records = new Map<string, ReservationRecord>()
  for (const { regionId, ...shown } of rows) {
    records.set(shown.id, { ...shown, region: await regionOf(store, regionId, client) })
  }
  return records
}

/** The id of the reservation of that name; null when there is none. */
export async function findReservationByName(
  store: Store,
  where: { project: string; region: string; name: string },
): Promise<string | null> {
  const { rows } = await store.pool.query<{ id: string }>({
    name: 'find-reservation-by-name',
    text: `
SELECT reservation.id FROM ipv4_reservation reservation JOIN region ON region.id = reservation.region_id
WHERE reservation.project = $1 AND region.code = $2 AND reservation.name = $3`,
    values: [where.project, where.region, where.name],
  })
  return rows[0]?.id ?? null
}

/** One page of ids, oldest first. */
export function listReservations(
  store: Store,
  selection: Selection & { page: PageRequest },
): Promise<Page<string>> {
  return readPage<string>(
    store.pool,
    {
      from: 'ipv4_reservation reservation',
      item: 'reservation.id',
      id: 'reservation.id',
      order: { sql: 'reservation.created_at', type: 'timestamptz', descending: false },
      conditions: conditionsOf(selection),
    },
    selection.page,
  )
}

/** How many reservations the filter matches. */
export function countReservations(store: Store, selection: Selection): Promise<number> {
  return countRows(store.pool, {
    from: 'ipv4_reservation reservation',
    conditions: conditionsOf(selection),
  })
}

function conditionsOf({ project, filter }: Selection): Conditions {
  const conditions = new Conditions()
  if (project !== null) conditions.add('reservation.project = ?', project)
  if (filter?.project) conditions.add('reservation.project = ANY (?::text[])', filter.project)
  if (filter?.ids) conditions.add('reservation.id = ANY (?::uuid[])', filter.ids)
  if (filter?.nameContains) {
    conditions.add('reservation.name LIKE ?', containing(filter.nameContains))
  }
  if (filter?.region) {
    conditions.add(
      'reservation.region_id IN (SELECT id FROM region WHERE code = ANY (?::text[]))',
      filter.region,
    )
  }
  if (filter?.address) conditions.add('reservation.address = ?::inet', filter.address)
  if (filter?.state) conditions.add('reservation.state = ANY (?::text[])', filter.state)
  if (typeof filter?.bound === 'boolean') {
    conditions.add('(reservation.load_balancer_id IS NOT NULL) = ?', filter.bound)
  }
  addLabelConditions(conditions, 'reservation.labels', filter?.labels)
  return conditions
}
