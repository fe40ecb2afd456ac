/**
 * Each refusal of the domain has a type of the graph, and only here. They all are `UserError`s; a
 * mutation answers with its payload or one of those that its union lists.
 */
import type { ValidationIssue as Issue } from '../domain/input.ts'
import * as refusals from '../domain/refusals.ts'
import { AddressFamily } from './addressFamily.ts'
import { FOR_OPERATORS } from './audience.ts'
import { builder } from './builder.ts'
import { globalId } from './ids.ts'

const UserError = builder.interfaceRef<refusals.Refusal>('UserError')

UserError.implement({
  description: 'Why a change was refused. Nothing was changed.',
  fields: (t) => ({
    code: t.exposeString('code', { description: 'What it is, for programs, e.g. `NAME_TAKEN`.' }),
    message: t.exposeString('message', { description: 'What is wrong, in words for people.' }),
    path: t.exposeStringList('path', {
      description:
        'Leads to the argument that it is about from the input, e.g. `["backends", "2"]`. Empty where it is about the whole.',
    }),
    hint: t.exposeString('hint', {
      nullable: true,
      description: 'What to do about it, in words for people; null where nothing can be said.',
    }),
    retryable: t.exposeBoolean('retryable', {
      description: 'Whether the same change may be accepted later.',
    }),
  }),
})

type RefusalClass<T extends refusals.Refusal> = abstract new (...args: never) => T

const names = new Map<unknown, string>()

/** The type of one refusal; its name is that of its class. */
function shown<T extends refusals.Refusal>(refusal: RefusalClass<T>) {
  names.set(refusal, refusal.name)
  return builder.objectRef<T>(refusal.name)
}

const ValidationIssue = builder.objectRef<Issue>('ValidationIssue')

ValidationIssue.implement({
  description: 'One value of an input that is not valid.',
  fields: (t) => ({
    code: t.exposeString('code', {
      description: 'What is wrong with it, for programs, e.g. `INVALID_ADDRESS`.',
    }),
    message: t.exposeString('message', {
      description: 'What is wrong with it, in words for people.',
    }),
    path: t.exposeStringList('path', {
      description: 'Leads to the value from the input, e.g. `["backends", "2", "address"]`.',
    }),
    suggestion: t.exposeString('suggestion', {
      nullable: true,
      description: 'What was probably meant, e.g. `10.0.0.1`; null where it is not clear.',
    }),
  }),
})

export const Refused = shown(refusals.Refused).implement({
  description:
    'Any refusal without a type of its own, told by its code: e.g. `VPC_NOT_OWNED` or `REGION_UNAVAILABLE`, and those to come.',
  interfaces: [UserError],
})

export const ValidationFailed = shown(refusals.ValidationFailed).implement({
  description: 'Values of the input are not valid; everything that is wrong is told at once.',
  interfaces: [UserError],
  fields: (t) => ({
    issues: t.field({
      type: [ValidationIssue],
      description: 'All that is wrong, in the order of the input.',
      resolve: ({ issues }) => issues,
    }),
  }),
})

export const NotFound = shown(refusals.NotFound).implement({
  description: 'There is no such object, or it is not visible to the caller: the same answer.',
  interfaces: [UserError],
  fields: (t) => ({
    missingId: t.id({
      nullable: true,
      description: 'The id that names nothing; null where it was not looked for by id.',
      resolve: ({ missingId }) => missingId,
    }),
  }),
})

export const NotReleased = shown(refusals.NotReleased).implement({
  description:
    'The platform has not opened load balancers to the project yet. Reading works already.',
  interfaces: [UserError],
  fields: (t) => ({
    projectName: t.string({
      description: 'The project that is not open.',
      resolve: ({ projectName }) => projectName,
    }),
  }),
})

export const NameTaken = shown(refusals.NameTaken).implement({
  description: 'Another object of the kind already has this name in the project and region.',
  interfaces: [UserError],
  fields: (t) => ({
    takenName: t.field({
      type: 'ResourceName',
      description: 'The name that is taken.',
      resolve: ({ takenName }) => takenName,
    }),
  }),
})

export const GenerationConflict = shown(refusals.GenerationConflict).implement({
  description:
    'The object is not at the generation that the change was meant for: somebody changed it meanwhile.',
  interfaces: [UserError],
  fields: (t) => ({
    expectedGeneration: t.int({
      description: 'The generation that was sent.',
      resolve: ({ expectedGeneration }) => expectedGeneration,
    }),
    currentGeneration: t.int({
      description: 'The generation that it is at.',
      resolve: ({ currentGeneration }) => currentGeneration,
    }),
  }),
})

export const IdempotencyKeyReused = shown(refusals.IdempotencyKeyReused).implement({
  description: 'The idempotency key was used with another input within the last 24 hours.',
  interfaces: [UserError],
})

export const QuotaExceeded = shown(refusals.QuotaExceeded).implement({
  description: 'It would be more than the project, or one object, may have.',
  interfaces: [UserError],
  fields: (t) => ({
    resource: t.string({
      description:
        'What there would be too many of, e.g. `networking.datumapis.com/loadbalancers`.',
      resolve: ({ resource }) => resource,
    }),
    limit: t.int({ description: 'How many there may be.', resolve: ({ limit }) => limit }),
    used: t.int({ description: 'How many count already.', resolve: ({ used }) => used }),
  }),
})

export const PoolExhausted = shown(refusals.PoolExhausted).implement({
  description: 'The region has no free address left.',
  interfaces: [UserError],
  fields: (t) => ({
    regionCode: t.string({
      nullable: true,
      description: 'The code of the region; null for all regions.',
      resolve: ({ regionCode }) => regionCode,
    }),
    family: t.field({
      type: AddressFamily,
      description: 'The kind of address that is used up.',
      resolve: ({ family }) => family,
    }),
  }),
})

export const PoolOverlap = shown(refusals.PoolOverlap).implement({
  description: 'A pool would share addresses with another one: an address belongs to one pool.',
  extensions: FOR_OPERATORS,
  interfaces: [UserError],
  fields: (t) => ({
    poolName: t.field({
      type: 'ResourceName',
      description: 'The name of the other pool.',
      resolve: ({ poolName }) => poolName,
    }),
    prefix: t.field({
      type: 'IPPrefix',
      description: 'The prefix of the other pool.',
      resolve: ({ prefix }) => prefix,
    }),
  }),
})

export const PoolInUse = shown(refusals.PoolInUse).implement({
  description:
    'Addresses that would leave the pool are in use, or a cluster may still carry them. Nobody is ever moved.',
  extensions: FOR_OPERATORS,
  interfaces: [UserError],
  fields: (t) => ({
    holders: t.field({
      type: ['IPAddress'],
      description: 'The first of these addresses, at most 10.',
      resolve: ({ holders }) => holders,
    }),
  }),
})

export const ClusterInUse = shown(refusals.ClusterInUse).implement({
  description: 'The cluster is not drained: rules of ours may still be there.',
  extensions: FOR_OPERATORS,
  interfaces: [UserError],
  fields: (t) => ({
    rules: t.int({
      description: 'How many rules may be left there.',
      resolve: ({ rules }) => rules,
    }),
  }),
})

export const RegionMismatch = shown(refusals.RegionMismatch).implement({
  description: 'Two objects that must be in one region are in two.',
  interfaces: [UserError],
  fields: (t) => ({
    expectedRegion: t.string({
      nullable: true,
      description: 'The code of the region that it should be in.',
      resolve: ({ expectedRegion }) => expectedRegion,
    }),
    actualRegion: t.string({
      nullable: true,
      description: 'The code of the region that it is in.',
      resolve: ({ actualRegion }) => actualRegion,
    }),
  }),
})

export const BackendsOutsideRegion = shown(refusals.BackendsOutsideRegion).implement({
  description: 'Backends are known to live in another region than the load balancer.',
  interfaces: [UserError],
  fields: (t) => ({
    addresses: t.field({
      type: ['IPAddress'],
      description: 'Their addresses.',
      resolve: ({ addresses }) => addresses,
    }),
  }),
})

export const ReservationInUse = shown(refusals.ReservationInUse).implement({
  description: 'The IPv4 reservation is bound to a load balancer.',
  interfaces: [UserError],
  fields: (t) => ({
    reservationId: t.id({
      description: 'The id of the reservation.',
      resolve: ({ reservationId }) => globalId('IPv4Reservation', reservationId),
    }),
    loadBalancerId: t.id({
      nullable: true,
      description: 'The id of the load balancer that it is bound to.',
      resolve: ({ loadBalancerId }) =>
        loadBalancerId === null ? null : globalId('LoadBalancer', loadBalancerId),
    }),
  }),
})

export const StaleHolder = shown(refusals.StaleHolder).implement({
  description: 'The IPv4 reservation is not bound to that load balancer (any more).',
  interfaces: [UserError],
  fields: (t) => ({
    holderId: t.id({
      nullable: true,
      description:
        'The id of the load balancer that it is bound to now; null where it is not bound.',
      resolve: ({ holderId }) => (holderId === null ? null : globalId('LoadBalancer', holderId)),
    }),
  }),
})

export const DeletionProtected = shown(refusals.DeletionProtected).implement({
  description: 'The object is protected against deletion.',
  interfaces: [UserError],
})

export const BeingDeleted = shown(refusals.BeingDeleted).implement({
  description: 'The load balancer is being deleted and takes no more changes.',
  interfaces: [UserError],
  fields: (t) => ({
    since: t.field({
      type: 'DateTime',
      description: 'When its deletion was asked for.',
      resolve: ({ since }) => since,
    }),
  }),
})

/** The name of the type that shows a refusal. */
export function typeOfRefusal(refusal: refusals.Refusal): string {
  const name = names.get(refusal.constructor)
  if (name === undefined) throw new Error(`no type shows the refusal ${refusal.code}`)
  return name
}
