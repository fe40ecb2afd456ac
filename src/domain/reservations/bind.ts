import type { PoolClient } from 'pg'
import type { Store } from '../../db/client.ts'
import { fieldChanges } from '../events/append.ts'
import { isId } from '../ids.ts'
import { changeLoadBalancer, type Decision } from '../loadBalancers/change.ts'
import {
  MOST_RESERVATIONS,
  quotaExceeded,
  tooManyReservations,
} from '../loadBalancers/createRefusals.ts'
import type { StoredLoadBalancer } from '../loadBalancers/stored.ts'
import type { Planned } from '../plans/plan.ts'
import type { LoadBalancerRecord, ReservationRecord } from '../records.ts'
import { Refusal, RegionMismatch, StaleHolder } from '../refusals.ts'
import { regionOf } from '../regions.ts'
import type { Scope } from '../scope.ts'
import {
  countChange,
  generationConflict,
  inUse,
  lockReservation,
  reservationNotFound,
} from './change.ts'
import type { BindIPv4ReservationInput, UnbindIPv4ReservationInput } from './inputs.ts'
import { readReservations } from './read.ts'
import { refoldReservation } from './refold.ts'

type Bound = { reservation: ReservationRecord; loadBalancer: LoadBalancerRecord }
type Answer = Bound | Planned | Refusal

const RULES = 'networking.datumapis.com/rulespervpc'

/**
 * Binds a reservation to a load balancer; one that it has already is no change. The address is served
 * there once no cluster can carry it for another load balancer any more.
 */
export function bindIPv4Reservation(
  store: Store,
  scope: Scope,
  input: BindIPv4ReservationInput,
): Promise<Answer> {
  return changeBinding(store, scope, input, async (current, reservation, holder, client) => {
    const region = await regionOf(store, current.regionId, client)
    if (reservation.region.id !== region.id) return regionMismatch(region.code, reservation)
    if (holder === current.id) return nothing
    const refused = await overQuota(client, current)
    if (refused) return refused
    const conflict = generationConflict(reservation, input.expectedGeneration)
    if (conflict) return conflict
    if (holder !== null) return inUse(reservation, holder)
    return binding(scope, current, reservation, { to: current.id })
  })
}

/** Takes a reservation from the load balancer that has it; refused where that is another one by now. */
export function unbindIPv4Reservation(
  store: Store,
  scope: Scope,
  input: UnbindIPv4ReservationInput,
): Promise<Answer> {
  return changeBinding(store, scope, input, async (current, reservation, holder) => {
    const conflict = generationConflict(reservation, input.expectedGeneration)
    if (conflict) return conflict
    if (holder !== current.id) return new StaleHolder(holder)
    return binding(scope, current, reservation, { to: null })
  })
}

export const nothing: Decision = {
  changes: [],
  // Without changes no event is written.
  reason: 'IPv4ReservationBound',
  message: '',
  touchesRules: false,
  write: async () => undefined,
}

async function changeBinding(
  store: Store,
  scope: Scope,
  input: BindIPv4ReservationInput,
  decide: (
    current: StoredLoadBalancer,
    reservation: ReservationRecord,
    holder: string | null,
    client: PoolClient,
  ) => Promise<Decision | Refusal>,
): Promise<Answer> {
  // The reservation's own number is what is expected; the load balancer's may be any.
  const ask = {
    id: input.loadBalancer,
    path: ['loadBalancer'],
    expectedGeneration: null,
    issues: () => [],
    validateOnly: input.validateOnly,
    reservations: [input.reservation].filter(isId),
    named: new Map([[input.reservation, ['reservation']]]),
  }
  const changed = await changeLoadBalancer(store, scope, ask, async (current, client) => {
    const reservation = await lockReservation(store, client, scope, input.reservation)
    if (reservation === undefined) return reservationNotFound(input.reservation, ['reservation'])
    const { rows } = await client.query<{ holder: string | null }>(
      'SELECT load_balancer_id AS holder FROM ipv4_reservation WHERE id = $1',
      [reservation.id],
    )
    return decide(current, reservation, rows[0]?.holder ?? null, client)
  })
  if (changed instanceof Refusal || 'plan' in changed) return changed
  const { project } = scope
  const found = await readReservations(store, { project, ids: [input.reservation] })
  const reservation = found.get(input.reservation)
  if (reservation === undefined) return reservationNotFound(input.reservation, ['reservation'])
  return { reservation, loadBalancer: changed.loadBalancer }
}

/**
 * Refuses one more address for a load balancer than it, or its VPC, can have. `fromVpc`: the VPC that
 * has the address now.
 */
export async function overQuota(
  client: PoolClient,
  current: StoredLoadBalancer,
  fromVpc?: string,
): Promise<Refusal | undefined> {
  const bound = current.addresses.filter(({ reservation }) => reservation !== null).length
  if (bound >= MOST_RESERVATIONS) return tooManyReservations(bound + 1)
  if (current.vpc.id === fromVpc) return undefined
  const { rows } = await client.query<{ used: number; limit: number | null }>(
    'SELECT served_vips($1, $2) AS used, quota_limit($3, $4, $2) AS limit',
    [current.vpc.id, current.regionId, current.project, RULES],
  )
  const { used = 0, limit = null } = rows[0] ?? {}
  return limit === null || used < limit
    ? undefined
    : quotaExceeded({ resource: RULES, limit, used })
}

function binding(
  scope: Scope,
  current: StoredLoadBalancer,
  reservation: ReservationRecord,
  { to }: { to: string | null },
): Decision {
  const bound = to !== null
  const words = `IPv4 reservation "${reservation.name}" (${reservation.address}) was ${bound ? 'bound to' : 'unbound from'} load balancer "${current.name}".`
  const address = {
    before: bound ? null : reservation.address,
    after: bound ? reservation.address : null,
  }
  return {
    changes: [{ path: ['addresses', reservation.address], ...address }],
    reason: bound ? 'IPv4ReservationBound' : 'IPv4ReservationUnbound',
    message: words,
    touchesRules: true,
    async write(client) {
      await client.query(
        `UPDATE ipv4_reservation SET load_balancer_id = $2,
           bound_at = CASE WHEN $2::uuid IS NULL THEN NULL ELSE clock_timestamp() END WHERE id = $1`,
        [reservation.id, to],
      )
      await countChange(client, scope, reservation, {
        reason: bound ? 'IPv4ReservationBound' : 'IPv4ReservationUnbound',
        message: words,
        changes: fieldChanges({ loadBalancer: bound ? null : current.id }, { loadBalancer: to }),
      })
      await refoldReservation(client, reservation.id)
    },
  }
}

/** The reservation is of another region than the load balancer. */
export const regionMismatch = (expected: string, reservation: ReservationRecord): RegionMismatch =>
  new RegionMismatch({
    message: `The reservation is in region "${reservation.region.code}", the load balancer in "${expected}".`,
    path: ['reservation'],
    hint: 'Reserve an address in the region of the load balancer.',
    expectedRegion: expected,
    actualRegion: reservation.region.code,
  })
