import type { Planned } from '../domain/plans/plan.ts'
import type { LoadBalancerRecord, ReservationRecord } from '../domain/records.ts'
import { builder } from './builder.ts'
import * as errors from './errors.ts'
import { IPv4Reservation } from './ipv4Reservation.ts'
import { LoadBalancer } from './loadBalancer.ts'
import { planOf, resultUnion } from './result.ts'

type Changed = { reservation: ReservationRecord }
export type ReservationPayload = Changed | Planned
export type BindingPayload = (Changed & { loadBalancer: LoadBalancerRecord }) | Planned

export type MovePayload = (Changed & { from: LoadBalancerRecord; to: LoadBalancerRecord }) | Planned

const UNLESS_PLANNED = ' Null where only the plan was asked for.'

const payload = (
  name: `${'Create' | 'Update' | 'Delete'}IPv4ReservationPayload`,
  description: string,
  which: string,
) =>
  builder.objectRef<ReservationPayload>(name).implement({
    description,
    fields: (t) => ({
      reservation: t.field({
        type: IPv4Reservation,
        nullable: true,
        description: which + UNLESS_PLANNED,
        resolve: (answer) => ('plan' in answer ? null : answer.reservation),
      }),
      plan: planOf(t),
    }),
  })

const bindingPayload = (name: `${'Bind' | 'Unbind'}IPv4ReservationPayload`, description: string) =>
  builder.objectRef<BindingPayload>(name).implement({
    description,
    fields: (t) => ({
      reservation: t.field({
        type: IPv4Reservation,
        nullable: true,
        description: `The reservation after the change.${UNLESS_PLANNED}`,
        resolve: (answer) => ('plan' in answer ? null : answer.reservation),
      }),
      loadBalancer: t.field({
        type: LoadBalancer,
        nullable: true,
        description: `The load balancer after the change.${UNLESS_PLANNED}`,
        resolve: (answer) => ('plan' in answer ? null : answer.loadBalancer),
      }),
      plan: planOf(t),
    }),
  })

export const CreateIPv4ReservationResult = resultUnion(
  'CreateIPv4ReservationResult',
  payload(
    'CreateIPv4ReservationPayload',
    'The address is reserved.',
    'The reservation, with its address.',
  ),
  [
    errors.ValidationFailed,
    errors.NotFound,
    errors.NotReleased,
    errors.NameTaken,
    errors.IdempotencyKeyReused,
    errors.QuotaExceeded,
    errors.PoolExhausted,
    errors.Refused,
  ],
)

export const UpdateIPv4ReservationResult = resultUnion(
  'UpdateIPv4ReservationResult',
  payload(
    'UpdateIPv4ReservationPayload',
    'The change was accepted.',
    'The reservation after the change.',
  ),
  [
    errors.ValidationFailed,
    errors.NotFound,
    errors.NotReleased,
    errors.NameTaken,
    errors.GenerationConflict,
    errors.Refused,
  ],
)

export const DeleteIPv4ReservationResult = resultUnion(
  'DeleteIPv4ReservationResult',
  payload(
    'DeleteIPv4ReservationPayload',
    'The reservation is gone, and its address with it.',
    'The reservation as it was last.',
  ),
  [
    errors.NotFound,
    errors.NotReleased,
    errors.GenerationConflict,
    errors.DeletionProtected,
    errors.ReservationInUse,
    errors.Refused,
  ],
)

export const BindIPv4ReservationResult = resultUnion(
  'BindIPv4ReservationResult',
  bindingPayload('BindIPv4ReservationPayload', 'The address is bound to the load balancer.'),
  [
    errors.ValidationFailed,
    errors.NotFound,
    errors.NotReleased,
    errors.RegionMismatch,
    errors.ReservationInUse,
    errors.GenerationConflict,
    errors.QuotaExceeded,
    errors.BeingDeleted,
    errors.Refused,
  ],
)

export const UnbindIPv4ReservationResult = resultUnion(
  'UnbindIPv4ReservationResult',
  bindingPayload(
    'UnbindIPv4ReservationPayload',
    'The load balancer does not have the address any more; the reservation keeps it.',
  ),
  [
    errors.NotFound,
    errors.NotReleased,
    errors.StaleHolder,
    errors.GenerationConflict,
    errors.Refused,
  ],
)

export const MoveIPv4ReservationResult = resultUnion(
  'MoveIPv4ReservationResult',
  builder.objectRef<MovePayload>('MoveIPv4ReservationPayload').implement({
    description:
      'The reservation belongs to the other load balancer, which serves its address as soon as the first has let go of it everywhere.',
    fields: (t) => ({
      reservation: t.field({
        type: IPv4Reservation,
        nullable: true,
        description: `The reservation after the move.${UNLESS_PLANNED}`,
        resolve: (answer) => ('plan' in answer ? null : answer.reservation),
      }),
      from: t.field({
        type: LoadBalancer,
        nullable: true,
        description: `The load balancer that had it.${UNLESS_PLANNED}`,
        resolve: (answer) => ('plan' in answer ? null : answer.from),
      }),
      to: t.field({
        type: LoadBalancer,
        nullable: true,
        description: `The load balancer that has it now.${UNLESS_PLANNED}`,
        resolve: (answer) => ('plan' in answer ? null : answer.to),
      }),
      plan: planOf(t),
    }),
  }),
  [
    errors.ValidationFailed,
    errors.NotFound,
    errors.NotReleased,
    errors.RegionMismatch,
    errors.StaleHolder,
    errors.GenerationConflict,
    errors.QuotaExceeded,
    errors.IdempotencyKeyReused,
    errors.BeingDeleted,
    errors.Refused,
  ],
)
