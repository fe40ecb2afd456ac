import { builder } from '../../schema/builder.ts'
import { EventFilter, eventFilter } from '../../schema/changeEvent.ts'
import { type Context, requirePermission } from '../../schema/context.ts'
import { badUserInput } from '../../schema/failures.ts'
import { NOTHING, uuidOf } from '../../schema/ids.ts'
import { IPv4ReservationFilter, ipv4ReservationFilter } from '../../schema/ipv4ReservationFilter.ts'
import { LoadBalancerFilter, loadBalancerFilter } from '../../schema/loadBalancerFilter.ts'
import { valid } from '../../schema/valid.ts'
import * as events from '../../schema/watchEvents.ts'
import { watchBackends } from './backends.ts'
import { watchLog } from './log.ts'
import { loadBalancers, oneLoadBalancer, reservations } from './objects.ts'
import { watchSettling } from './settled.ts'
import { watch } from './watch.ts'

/** How long `loadBalancerSettled` waits where nothing is said, and at most, in seconds. */
const DEFAULT_TIMEOUT = 300
const LONGEST_TIMEOUT = 3600

/** What an event shows besides what it carries is read anew, or it would show what was. */
function afresh<T>(event: T, context: Context): T {
  context.loaders.forget()
  return event
}

const after =
  'Go on from this position, without a snapshot: what came since, and then every change.'

builder.subscriptionFields((t) => ({
  loadBalancer: t.field({
    type: events.LoadBalancerWatchEvent,
    description: 'One load balancer. The stream ends when it is gone, or if there is none.',
    args: {
      id: t.arg.id({ required: true, description: 'The load balancer to watch.' }),
      after: t.arg({ type: 'LogCursor', description: after }),
    },
    subscribe: (_root, args, context) => {
      requirePermission(context, 'loadbalancers.get')
      const uuid = uuidOf('LoadBalancer', args.id) ?? NOTHING
      return watch(context, oneLoadBalancer(context, uuid), valid(args).after ?? null)
    },
    resolve: (event, _args, context) => afresh(event, context),
  }),
  loadBalancers: t.field({
    type: events.LoadBalancerWatchEvent,
    description: 'The load balancers of the project that match.',
    args: {
      filter: t.arg({
        type: LoadBalancerFilter,
        description: 'Which ones; all where none is given.',
      }),
      after: t.arg({ type: 'LogCursor', description: after }),
    },
    subscribe: (_root, args, context) => {
      requirePermission(context, 'loadbalancers.list')
      const filter = loadBalancerFilter(args.filter)
      return watch(context, loadBalancers(context, filter), valid(args).after ?? null)
    },
    resolve: (event, _args, context) => afresh(event, context),
  }),
  backendHealth: t.field({
    type: events.BackendHealthWatchEvent,
    description:
      'The backends of one load balancer: an event for each that comes, goes, or fares otherwise than before. The stream ends with the load balancer.',
    args: {
      loadBalancer: t.arg.id({ required: true, description: 'The load balancer to watch.' }),
      after: t.arg({ type: 'LogCursor', description: after }),
    },
    subscribe: (_root, args, context) => {
      requirePermission(context, 'loadbalancers.get')
      const uuid = uuidOf('LoadBalancer', args.loadBalancer) ?? NOTHING
      return watchBackends(context, uuid, valid(args).after ?? null)
    },
    resolve: (event, _args, context) => afresh(event, context),
  }),
  ipv4Reservations: t.field({
    type: events.IPv4ReservationWatchEvent,
    description: 'The IPv4 reservations of the project that match.',
    args: {
      filter: t.arg({
        type: IPv4ReservationFilter,
        description: 'Which ones; all where none is given.',
      }),
      after: t.arg({ type: 'LogCursor', description: after }),
    },
    subscribe: (_root, args, context) => {
      requirePermission(context, 'ipv4reservations.list')
      const filter = ipv4ReservationFilter(args.filter)
      return watch(context, reservations(context, filter), valid(args).after ?? null)
    },
    resolve: (event, _args, context) => afresh(event, context),
  }),
  events: t.field({
    type: events.ChangeWatchEvent,
    description:
      'The log of all changes in the project as it grows. The past is not sent (the query `events` shows it): the stream begins with SYNCED.',
    args: {
      filter: t.arg({ type: EventFilter, description: 'Which ones; all where none is given.' }),
      after: t.arg({ type: 'LogCursor', description: 'Begin after this position.' }),
    },
    subscribe: (_root, args, context) => {
      requirePermission(context, 'loadbalancers.list', 'ipv4reservations.list')
      return watchLog(context, eventFilter(args.filter), valid(args).after ?? null)
    },
    resolve: (event, _args, context) => afresh(event, context),
  }),
  loadBalancerSettled: t.field({
    type: events.LoadBalancerSettledEvent,
    description:
      'Waits until what was asked for is in effect: WAITING with what is missing, again whenever that changes; then one of the other outcomes, and the end.',
    args: {
      id: t.arg.id({ required: true, description: 'The load balancer to wait for.' }),
      generation: t.arg.int({
        description: 'The generation to wait for; the present one where none is given.',
      }),
      timeoutSeconds: t.arg.int({
        description: `How long to wait, 0 to ${LONGEST_TIMEOUT} seconds; ${DEFAULT_TIMEOUT} where nothing is given.`,
      }),
    },
    subscribe: (_root, { id, generation, timeoutSeconds }, context) => {
      requirePermission(context, 'loadbalancers.get')
      const seconds = timeoutSeconds ?? DEFAULT_TIMEOUT
      if (seconds < 0 || seconds > LONGEST_TIMEOUT) {
        throw badUserInput(`timeoutSeconds is ${seconds}; it goes from 0 to ${LONGEST_TIMEOUT}.`)
      }
      return watchSettling(context, {
        uuid: uuidOf('LoadBalancer', id) ?? NOTHING,
        generation: generation ?? null,
        timeoutSeconds: seconds,
      })
    },
    resolve: (event, _args, context) => afresh(event, context),
  }),
}))
