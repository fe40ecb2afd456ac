import type { Planned } from '../domain/plans/plan.ts'
import type { LoadBalancerRecord } from '../domain/records.ts'
import { Backend } from './backend.ts'
import { builder } from './builder.ts'
import * as errors from './errors.ts'
import { LoadBalancer } from './loadBalancer.ts'
import { planOf, resultUnion } from './result.ts'

type Changed = { loadBalancer: LoadBalancerRecord }
export type LoadBalancerPayload = Changed | Planned
export type BackendsPayload = (Changed & { backends: string[] }) | Planned

const AFTER = 'The load balancer after the change; null where only its plan was asked for.'

const payload = (
  name:
    | `${'Create' | 'Update' | 'Delete'}LoadBalancerPayload`
    | `${'Remove' | 'Set'}BackendsPayload`,
  description: string,
) =>
  builder.objectRef<LoadBalancerPayload>(name).implement({
    description,
    fields: (t) => ({
      loadBalancer: t.field({
        type: LoadBalancer,
        nullable: true,
        description: AFTER,
        resolve: (answer) => ('plan' in answer ? null : answer.loadBalancer),
      }),
      plan: planOf(t),
    }),
  })

const backendsPayload = (
  name: `${'Add' | 'Update'}BackendsPayload`,
  description: string,
  which: string,
) =>
  builder.objectRef<BackendsPayload>(name).implement({
    description,
    fields: (t) => ({
      loadBalancer: t.field({
        type: LoadBalancer,
        nullable: true,
        description: AFTER,
        resolve: (answer) => ('plan' in answer ? null : answer.loadBalancer),
      }),
      backends: t.field({
        type: [Backend],
        description: which,
        resolve: (answer) => {
          if ('plan' in answer) return []
          const { loadBalancer, backends } = answer
          return loadBalancer.backends
            .filter(({ id }) => backends.includes(id))
            .map((backend) => ({ backend, loadBalancer }))
        },
      }),
      plan: planOf(t),
    }),
  })

export const CreateLoadBalancerResult = resultUnion(
  'CreateLoadBalancerResult',
  payload('CreateLoadBalancerPayload', 'The load balancer was created.'),
  [
    errors.ValidationFailed,
    errors.NotFound,
    errors.NotReleased,
    errors.NameTaken,
    errors.IdempotencyKeyReused,
    errors.QuotaExceeded,
    errors.PoolExhausted,
    errors.RegionMismatch,
    errors.BackendsOutsideRegion,
    errors.ReservationInUse,
    errors.Refused,
  ],
  { refusedCodes: ['VPC_NOT_OWNED'] },
)

export const UpdateLoadBalancerResult = resultUnion(
  'UpdateLoadBalancerResult',
  payload('UpdateLoadBalancerPayload', 'The change was accepted.'),
  [
    errors.ValidationFailed,
    errors.NotFound,
    errors.NotReleased,
    errors.NameTaken,
    errors.GenerationConflict,
    errors.BeingDeleted,
    errors.Refused,
  ],
)

export const DeleteLoadBalancerResult = resultUnion(
  'DeleteLoadBalancerResult',
  payload(
    'DeleteLoadBalancerPayload',
    'The deletion was accepted. The load balancer stays visible until nothing serves it any more.',
  ),
  [
    errors.NotFound,
    errors.NotReleased,
    errors.GenerationConflict,
    errors.DeletionProtected,
    errors.Refused,
  ],
)

export const AddBackendsResult = resultUnion(
  'AddBackendsResult',
  backendsPayload(
    'AddBackendsPayload',
    'The backends are there.',
    'The backends with the addresses given, those that were there before included.',
  ),
  [
    errors.ValidationFailed,
    errors.NotFound,
    errors.NotReleased,
    errors.NameTaken,
    errors.GenerationConflict,
    errors.QuotaExceeded,
    errors.BackendsOutsideRegion,
    errors.BeingDeleted,
    errors.Refused,
  ],
  { refusedCodes: ['VPC_NOT_OWNED'] },
)

export const RemoveBackendsResult = resultUnion(
  'RemoveBackendsResult',
  payload('RemoveBackendsPayload', 'The backends are not there any more.'),
  [
    errors.ValidationFailed,
    errors.NotFound,
    errors.NotReleased,
    errors.GenerationConflict,
    errors.BeingDeleted,
    errors.Refused,
  ],
)

export const SetBackendsResult = resultUnion(
  'SetBackendsResult',
  payload('SetBackendsPayload', 'The backends are exactly those that were given.'),
  [
    errors.ValidationFailed,
    errors.NotFound,
    errors.NotReleased,
    errors.NameTaken,
    errors.GenerationConflict,
    errors.QuotaExceeded,
    errors.BackendsOutsideRegion,
    errors.BeingDeleted,
    errors.Refused,
  ],
  { refusedCodes: ['VPC_NOT_OWNED'] },
)

export const UpdateBackendsResult = resultUnion(
  'UpdateBackendsResult',
  backendsPayload(
    'UpdateBackendsPayload',
    'The backends were changed.',
    'The backends that were named.',
  ),
  [
    errors.ValidationFailed,
    errors.NotFound,
    errors.NotReleased,
    errors.NameTaken,
    errors.GenerationConflict,
    errors.BeingDeleted,
    errors.Refused,
  ],
)
