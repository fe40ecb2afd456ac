import type { ReservationRecord } from '../domain/records.ts'
import { builder } from './builder.ts'
import { ChangeEventConnection, EventFilter, eventsOf } from './changeEvent.ts'
import { requirePermission } from './context.ts'
import { globalId } from './ids.ts'
import { Label } from './label.ts'
import { LoadBalancer } from './loadBalancer.ts'
import { Node } from './node.ts'
import { pageArgs, total } from './pages.ts'
import { Region } from './region.ts'
import { StatusCondition } from './statusCondition.ts'

export const IPv4ReservationState = builder.enumType('IPv4ReservationState', {
  description: 'Where an IPv4 reservation stands; the roll-up of its bindings.',
  values: {
    RESERVED: { description: 'It is held, and no load balancer uses it.' },
    BINDING: { description: 'It was bound to a load balancer and is on its way into effect.' },
    BOUND: { description: 'It is bound to a load balancer.' },
    UNBINDING: { description: 'It was unbound and is still being withdrawn.' },
  } as const,
})

const IPv4BindingState = builder.enumType('IPv4BindingState', {
  description: 'Where the binding of an IPv4 reservation to a load balancer stands.',
  values: {
    WAITING: {
      description: 'It is bound; what served the address before must let go of it first.',
    },
    BINDING: { description: 'It is on its way into effect.' },
    BOUND: { description: 'It is bound.' },
    UNBINDING: { description: 'It was unbound and is still being withdrawn.' },
  } as const,
})

const IPv4Binding = builder.objectRef<ReservationRecord['bindings'][number]>('IPv4Binding')

IPv4Binding.implement({
  description: 'That an IPv4 reservation is an address of a load balancer.',
  fields: (t) => ({
    loadBalancer: t.field({
      type: LoadBalancer,
      description: 'The load balancer that has the address.',
      resolve: async ({ loadBalancer }, _args, context) => {
        requirePermission(context, 'loadbalancers.get')
        const record = await context.loaders.loadBalancers.load(loadBalancer)
        if (record === null)
          throw new Error(`binding to load balancer ${loadBalancer}, which is gone`)
        return record
      },
    }),
    state: t.expose('state', { type: IPv4BindingState, description: 'Where the binding stands.' }),
    effective: t.expose('effective', {
      type: StatusCondition,
      description: 'Whether the address is served, and why not where it is not.',
    }),
  }),
})

export const IPv4Reservation = builder.objectRef<ReservationRecord>('IPv4Reservation')

IPv4Reservation.implement({
  description:
    'A static IPv4 address that a project holds in a region, with or without a load balancer. It stays the same until the reservation is deleted.',
  interfaces: [Node],
  fields: (t) => ({
    id: t.id({
      description: 'Names this reservation among all objects of the API.',
      resolve: ({ id }) => globalId('IPv4Reservation', id),
    }),
    name: t.expose('name', {
      type: 'ResourceName',
      description: 'Its name, unique in the project and region.',
    }),
    displayName: t.exposeString('displayName', {
      nullable: true,
      description: 'A name for people; null where none is set.',
    }),
    description: t.exposeString('description', {
      nullable: true,
      description: 'What it is for, in words of its owner; null where none are set.',
    }),
    labels: t.expose('labels', {
      type: [Label],
      description: 'Words of its owner to find and group it by, ordered by key.',
    }),
    projectName: t.exposeString('project', { description: 'The project that holds it.' }),
    region: t.expose('region', {
      type: Region,
      nullable: true,
      description: 'The region that it belongs to. Null is kept for reservations of all regions.',
    }),
    address: t.expose('address', { type: 'IPv4Address', description: 'The address that is held.' }),
    state: t.expose('state', {
      type: IPv4ReservationState,
      description: 'Where it stands; the roll-up of its bindings.',
    }),
    bindings: t.expose('bindings', {
      type: [IPv4Binding],
      description: 'The load balancer that has it: none or one; while it moves, both.',
    }),
    deletionProtection: t.exposeBoolean('deletionProtection', {
      description: 'While true, deleting it is refused.',
    }),
    generation: t.exposeInt('generation', {
      description: 'Counts the accepted changes of what was asked for, beginning with 1.',
    }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it was created.' }),
    updatedAt: t.expose('updatedAt', {
      type: 'DateTime',
      description: 'When what was asked for was last changed.',
    }),
    events: t.field({
      type: ChangeEventConnection,
      description: 'Everything that ever happened to it, newest first.',
      args: {
        ...pageArgs(t.arg),
        filter: t.arg({ type: EventFilter, description: 'Which ones; all where none is given.' }),
      },
      resolve: ({ id }, args, context) => eventsOf(context, args, id),
    }),
  }),
})

export const IPv4ReservationConnection = builder.connectionObject(
  {
    type: IPv4Reservation,
    name: 'IPv4ReservationConnection',
    description: 'A page of IPv4 reservations.',
    fields: (t) => ({
      totalCount: t.int({
        description: 'How many there are in all, over every page.',
        resolve: total,
      }),
    }),
  },
  { name: 'IPv4ReservationEdge', description: 'An IPv4 reservation and its place in the list.' },
)
