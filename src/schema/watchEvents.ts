/** What subscriptions send: one envelope for each kind of object, all told by the same words. */
import type {
  StatusCondition as Condition,
  EventRecord,
  LoadBalancerRecord,
  ReservationRecord,
} from '../domain/records.ts'
import { Backend } from './backend.ts'
import { BackendCounts } from './backendCounts.ts'
import { builder } from './builder.ts'
import { ChangeEvent } from './changeEvent.ts'
import { backendId, globalId } from './ids.ts'
import { IPv4Reservation } from './ipv4Reservation.ts'
import { LoadBalancer } from './loadBalancer.ts'
import type { BackendShape } from './shapes.ts'
import { StatusCondition } from './statusCondition.ts'

export type WatchEventType =
  | 'ADDED'
  | 'MODIFIED'
  | 'LEFT'
  | 'DELETED'
  | 'SYNCED'
  | 'HEARTBEAT'
  | 'RESYNC'

/** `id` is the object's UUID; `object` as it is now, or was last. */
export type WatchEvent<T> = {
  type: WatchEventType
  cursor: string
  at: string
  id: string | null
  object: T | null
}
export type BackendHealthEvent = WatchEvent<BackendShape> & {
  loadBalancer: LoadBalancerRecord | null
}

export type Outcome = 'WAITING' | 'SETTLED' | 'SUPERSEDED' | 'DELETED' | 'TIMED_OUT'
export type SettledEvent = {
  outcome: Outcome
  generation: number
  unmet: Condition[]
  loadBalancer: LoadBalancerRecord | null
}

const WatchEventType = builder.enumType('WatchEventType', {
  description:
    'What an event of a subscription tells. ADDED, MODIFIED, LEFT and DELETED carry the object (DELETED: as it was last, where it is still known); the others never do.',
  values: {
    ADDED: { description: 'It is there, and was not before; at first: it is there.' },
    MODIFIED: { description: 'It changed.' },
    LEFT: {
      description:
        'It is still there but no longer matches the filter. Harmless for one that you never had.',
    },
    DELETED: { description: 'It is gone.' },
    SYNCED: { description: 'All that was there at first has been sent; from now on come changes.' },
    HEARTBEAT: { description: 'Nothing changed for 10 seconds; the stream is alive.' },
    RESYNC: {
      description:
        'The cursor that was given cannot be continued from: forget what you have, everything comes anew.',
    },
  } as const,
})

const type = 'What this event tells.'
const cursor =
  'Pass it as `after` to go on from here after a broken connection. Nothing is missed; the newest state of an object may come once more.'
const at = 'When this event was made.'

const LoadBalancerWatchEvent =
  builder.objectRef<WatchEvent<LoadBalancerRecord>>('LoadBalancerWatchEvent')
LoadBalancerWatchEvent.implement({
  description: 'What happened to a load balancer, or to the stream.',
  fields: (t) => ({
    type: t.expose('type', { type: WatchEventType, description: type }),
    cursor: t.expose('cursor', { type: 'LogCursor', description: cursor }),
    at: t.expose('at', { type: 'DateTime', description: at }),
    id: t.id({
      nullable: true,
      description: 'The id of the load balancer; null where the event is about none.',
      resolve: ({ id }) => (id === null ? null : globalId('LoadBalancer', id)),
    }),
    loadBalancer: t.expose('object', {
      type: LoadBalancer,
      nullable: true,
      description: 'The load balancer as it is now (DELETED: as it was last).',
    }),
  }),
})

const BackendHealthWatchEvent = builder.objectRef<BackendHealthEvent>('BackendHealthWatchEvent')
BackendHealthWatchEvent.implement({
  description: 'What happened to a backend of a load balancer, or to the stream.',
  fields: (t) => ({
    type: t.expose('type', { type: WatchEventType, description: type }),
    cursor: t.expose('cursor', { type: 'LogCursor', description: cursor }),
    at: t.expose('at', { type: 'DateTime', description: at }),
    id: t.id({
      nullable: true,
      description: 'The id of the backend; null where the event is about none.',
      resolve: ({ object }) =>
        object === null ? null : backendId(object.loadBalancer.id, object.backend.id),
    }),
    backend: t.expose('object', {
      type: Backend,
      nullable: true,
      description: 'The backend as it is now (DELETED: as it was last).',
    }),
    counts: t.expose('loadBalancer', {
      type: BackendCounts,
      nullable: true,
      description: 'How many backends the load balancer has now, by what they do.',
    }),
  }),
})

const IPv4ReservationWatchEvent = builder.objectRef<WatchEvent<ReservationRecord>>(
  'IPv4ReservationWatchEvent',
)
IPv4ReservationWatchEvent.implement({
  description: 'What happened to an IPv4 reservation, or to the stream.',
  fields: (t) => ({
    type: t.expose('type', { type: WatchEventType, description: type }),
    cursor: t.expose('cursor', { type: 'LogCursor', description: cursor }),
    at: t.expose('at', { type: 'DateTime', description: at }),
    id: t.id({
      nullable: true,
      description: 'The id of the reservation; null where the event is about none.',
      resolve: ({ id }) => (id === null ? null : globalId('IPv4Reservation', id)),
    }),
    reservation: t.expose('object', {
      type: IPv4Reservation,
      nullable: true,
      description: 'The reservation as it is now (DELETED: as it was last).',
    }),
  }),
})

const ChangeWatchEvent = builder.objectRef<WatchEvent<EventRecord>>('ChangeWatchEvent')
ChangeWatchEvent.implement({
  description: 'A new entry in the log of the project, or what happened to the stream.',
  fields: (t) => ({
    type: t.expose('type', {
      type: WatchEventType,
      description: 'What this event tells; ADDED for an entry of the log.',
    }),
    cursor: t.expose('cursor', { type: 'LogCursor', description: cursor }),
    at: t.expose('at', { type: 'DateTime', description: at }),
    event: t.expose('object', {
      type: ChangeEvent,
      nullable: true,
      description: 'The entry.',
    }),
  }),
})

const SettleOutcome = builder.enumType('SettleOutcome', {
  description: 'What waiting for a change to be in effect came to.',
  values: {
    WAITING: { description: 'It is on its way; `unmet` says what is missing.' },
    SETTLED: { description: 'It is in effect everywhere. The stream ends.' },
    SUPERSEDED: { description: 'A newer generation was asked for meanwhile. The stream ends.' },
    DELETED: { description: 'The load balancer is gone. The stream ends.' },
    TIMED_OUT: { description: 'It took longer than was allowed. The stream ends.' },
  } as const,
})

const LoadBalancerSettledEvent = builder.objectRef<SettledEvent>('LoadBalancerSettledEvent')
LoadBalancerSettledEvent.implement({
  description: 'How far a generation of a load balancer is on its way into effect.',
  fields: (t) => ({
    outcome: t.expose('outcome', { type: SettleOutcome, description: 'Where it stands.' }),
    generation: t.exposeInt('generation', {
      description: 'The generation that is waited for.',
    }),
    unmet: t.expose('unmet', {
      type: [StatusCondition],
      description: 'The conditions that do not hold yet, out of Ready and Provisioned.',
    }),
    loadBalancer: t.expose('loadBalancer', {
      type: LoadBalancer,
      nullable: true,
      description:
        'The load balancer as it is now (DELETED: as it was last; null where that was before).',
    }),
  }),
})

export {
  BackendHealthWatchEvent,
  ChangeWatchEvent,
  IPv4ReservationWatchEvent,
  LoadBalancerSettledEvent,
  LoadBalancerWatchEvent,
}
