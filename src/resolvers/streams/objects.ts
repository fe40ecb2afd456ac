/** The two kinds of objects that can be watched, as `watch` wants them told. */
import type { Store } from '../../db/client.ts'
import {
  type LoadBalancerFilter,
  listLoadBalancers,
  placedIn,
} from '../../domain/loadBalancers/list.ts'
import { readLoadBalancers } from '../../domain/loadBalancers/read.ts'
import { type StoredLoadBalancer, toRecord } from '../../domain/loadBalancers/stored.ts'
import type { LoadBalancerRecord, Page, ReservationRecord } from '../../domain/records.ts'
import { regionOf } from '../../domain/regions.ts'
import {
  listReservations,
  type ReservationFilter,
  readReservations,
} from '../../domain/reservations/read.ts'
import type { Context } from '../../schema/context.ts'
import { matchesReservation } from '../../schema/ipv4ReservationFilter.ts'
import { matchesLoadBalancer } from '../../schema/loadBalancerFilter.ts'
import { LARGEST_PAGE } from '../../schema/pages.ts'
import { beginning } from './beginning.ts'
import { Shared } from './changes.ts'
import { shared } from './shared.ts'
import type { Watched } from './watch.ts'

// Of which project a change is, is known from the log.
const loadBalancersOf = shared((store, ids) => readLoadBalancers(store, { project: null, ids }))
const reservationsOf = shared((store, ids) => readReservations(store, { project: null, ids }))
const sharedOfLoadBalancers = new Shared<LoadBalancerRecord>()
const sharedOfReservations = new Shared<ReservationRecord>()

/** The load balancers of the project that match. */
export function loadBalancers(
  { store, project }: Context,
  filter: LoadBalancerFilter,
): Watched<LoadBalancerRecord> {
  // Those of the records read last: each is matched before more are read.
  let placed: ReadonlySet<string> = new Set()
  const { cluster } = filter
  const place = async (ids: string[]) => {
    if (cluster != null) placed = await placedIn(store, cluster, ids)
  }
  return {
    kind: 'LoadBalancer',
    filtered: Object.keys(filter).length > 0,
    matches: (record) => matchesLoadBalancer(filter, record, placed),
    list: () => allOf(store, (page) => listLoadBalancers(store, { project, filter, page })),
    read: (ids) =>
      beginning(store, async () => {
        await place(ids)
        return readLoadBalancers(store, { project, ids })
      }),
    reread: (changed) => loadBalancersOf(store, changed),
    ...(cluster == null ? {} : { place }),
    last: (logged) => lastLoadBalancer(store, logged),
    shared: sharedOfLoadBalancers,
  }
}

/** One load balancer; the stream ends at once where there is none. */
export function oneLoadBalancer(
  { store, project }: Context,
  uuid: string,
): Watched<LoadBalancerRecord> {
  return {
    kind: 'LoadBalancer',
    only: uuid,
    filtered: false,
    matches: () => true,
    async *list() {
      yield [uuid]
    },
    read: (ids) => beginning(store, () => readLoadBalancers(store, { project, ids })),
    reread: (changed) => loadBalancersOf(store, changed),
    last: (logged) => lastLoadBalancer(store, logged),
    shared: sharedOfLoadBalancers,
  }
}

/** The IPv4 reservations of the project that match. */
export function reservations(
  { store, project }: Context,
  filter: ReservationFilter,
): Watched<ReservationRecord> {
  return {
    kind: 'IPv4Reservation',
    filtered: Object.keys(filter).length > 0,
    matches: (record) => matchesReservation(filter, record),
    list: () => allOf(store, (page) => listReservations(store, { project, filter, page })),
    read: (ids) => beginning(store, () => readReservations(store, { project, ids })),
    reread: (changed) => reservationsOf(store, changed),
    // Logged as the record that it was, by deleteIPv4Reservation.
    last: async (logged) => logged as ReservationRecord,
    shared: sharedOfReservations,
  }
}

/** Logged as it was stored, by finishDeletion. */
async function lastLoadBalancer(store: Store, logged: unknown): Promise<LoadBalancerRecord> {
  const stored = logged as StoredLoadBalancer
  return toRecord(stored, await regionOf(store, stored.regionId))
}

type List = (page: { first: number; after?: string }) => Promise<Page<string>>

/** A whole list, page after page. */
async function* allOf(store: Store, list: List): AsyncGenerator<string[]> {
  let page = await beginning(store, () => list({ first: LARGEST_PAGE }))
  while (true) {
    yield page.items.map(({ item }) => item)
    const last = page.items.at(-1)
    if (!page.hasNextPage || last === undefined) return
    const { cursor: after } = last
    page = await beginning(store, () => list({ first: LARGEST_PAGE, after }))
  }
}
