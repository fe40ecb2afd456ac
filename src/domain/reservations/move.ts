import type { PoolClient } from 'pg'
import type { Store } from '../../db/client.ts'
import { fieldChanges } from '../events/append.ts'
import { findKey, hashOf, keepKey } from '../idempotency.ts'
import { isId } from '../ids.ts'
import { changeLoadBalancer, commit, type Decision } from '../loadBalancers/change.ts'
import { readLoadBalancers } from '../loadBalancers/read.ts'
import { readForFold } from '../loadBalancers/refold.ts'
import type { StoredLoadBalancer } from '../loadBalancers/stored.ts'
import type { Planned } from '../plans/plan.ts'
import type { LoadBalancerRecord, ReservationRecord } from '../records.ts'
import { IdempotencyKeyReused, Refusal, StaleHolder, ValidationFailed } from '../refusals.ts'
import { regionOf } from '../regions.ts'
import type { Scope } from '../scope.ts'
import { idempotencyKeyIssues } from '../texts.ts'
import { nothing, overQuota, regionMismatch } from './bind.ts'
import { countChange, generationConflict, lockReservation, reservationNotFound } from './change.ts'
import type { MoveIPv4ReservationInput } from './inputs.ts'
import { readReservations } from './read.ts'
import { refoldReservation } from './refold.ts'

type Moved = { reservation: ReservationRecord; from: LoadBalancerRecord; to: LoadBalancerRecord }

const MUTATION = 'moveIPv4Reservation'

/**
 * Moves a bound address from one load balancer to another, as one change. It is served there once no
 * cluster can carry it for the first any more: never in two rules at once, and never lost, since the
 * reservation belongs to the second from this moment on.
 */
export async function moveIPv4Reservation(
  store: Store,
  scope: Scope,
  input: MoveIPv4ReservationInput,
): Promise<Moved | Planned | Refusal> {
  const ask = {
    id: input.to,
    path: ['to'],
    with: input.from === input.to ? [] : [{ id: input.from, path: ['from'] }],
    expectedGeneration: null,
    issues: () => [],
    validateOnly: input.validateOnly,
    reservations: [input.reservation].filter(isId),
    named: new Map([[input.reservation, ['reservation']]]),
  }
  const changed = await changeLoadBalancer(store, scope, ask, (to, client) =>
    decide(store, client, scope, input, to),
  )
  if (changed instanceof Refusal || 'plan' in changed) return changed
  const { project } = scope
  const reservations = await readReservations(store, { project, ids: [input.reservation] })
  const reservation = reservations.get(input.reservation)
  if (reservation === undefined) return reservationNotFound(input.reservation, ['reservation'])
  const others = await readLoadBalancers(store, { project, ids: [input.from] })
  // One that was deleted since this key was used is shown as nothing more than the target.
  const from = others.get(input.from) ?? changed.loadBalancer
  return { reservation, from, to: changed.loadBalancer }
}

async function decide(
  store: Store,
  client: PoolClient,
  scope: Scope,
  input: MoveIPv4ReservationInput,
  to: StoredLoadBalancer,
): Promise<Decision | Refusal> {
  const reservation = await lockReservation(store, client, scope, input.reservation)
  if (reservation === undefined) return reservationNotFound(input.reservation, ['reservation'])
  const issues = idempotencyKeyIssues(input.idempotencyKey)
  if (issues.length > 0) return new ValidationFailed(issues)
  const key = input.idempotencyKey ?? null
  const inputHash = hashOf({ reservation: input.reservation, from: input.from, to: input.to })
  // Twins queue on the load balancers, which are locked.
  const used = key === null ? undefined : await findKey(client, scope.project, MUTATION, key)
  if (used?.inputHash === inputHash) return { ...nothing, repeated: true }
  const region = await regionOf(store, to.regionId, client)
  if (reservation.region.id !== region.id) return regionMismatch(region.code, reservation)
  const { rows } = await client.query<{ holder: string | null }>(
    'SELECT load_balancer_id AS holder FROM ipv4_reservation WHERE id = $1',
    [reservation.id],
  )
  const holder = rows[0]?.holder ?? null
  const from = (await readForFold(client, input.from))?.stored
  const over = await overQuota(client, to, from?.vpc.id)
  if (over && input.from !== input.to) return over
  if (used !== undefined) return new IdempotencyKeyReused()
  const conflict = generationConflict(reservation, input.expectedGeneration)
  if (conflict) return conflict
  if (holder !== input.from) return new StaleHolder(holder)
  if (from === undefined || from.id === to.id) return nothing
  const keep = () =>
    key === null
      ? Promise.resolve()
      : keepKey(client, {
          project: scope.project,
          mutation: MUTATION,
          key,
          inputHash,
          objectId: reservation.id,
        })
  return move(scope, reservation, from, to, keep)
}

function move(
  scope: Scope,
  reservation: ReservationRecord,
  from: StoredLoadBalancer,
  to: StoredLoadBalancer,
  keep: () => Promise<void>,
): Decision {
  const { name, address } = reservation
  const message = `IPv4 reservation "${name}" (${address}) was moved from load balancer "${from.name}" to "${to.name}".`
  const told = { reason: 'IPv4ReservationMoved', message, touchesRules: true } as const
  const path = ['addresses', address]
  const leaving: Decision = {
    ...told,
    changes: [{ path, before: address, after: null }],
    write: async () => undefined,
  }
  return {
    ...told,
    changes: [{ path, before: null, after: address }],
    async write(client) {
      await client.query(
        'UPDATE ipv4_reservation SET load_balancer_id = $2, bound_at = clock_timestamp() WHERE id = $1',
        [reservation.id, to.id],
      )
      await commit(client, scope, from, leaving)
      await countChange(client, scope, reservation, {
        reason: told.reason,
        message,
        changes: fieldChanges({ loadBalancer: from.id }, { loadBalancer: to.id }),
      })
      await refoldReservation(client, reservation.id)
      await keep()
    },
  }
}
