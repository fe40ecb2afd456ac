import { bindIPv4Reservation, unbindIPv4Reservation } from '../domain/reservations/bind.ts'
import { deleteIPv4Reservation, updateIPv4Reservation } from '../domain/reservations/change.ts'
import { createIPv4Reservation } from '../domain/reservations/create.ts'
import { moveIPv4Reservation } from '../domain/reservations/move.ts'
import { builder } from '../schema/builder.ts'
import { requirePermission, scopeOf } from '../schema/context.ts'
import * as inputs from '../schema/ipv4ReservationInputs.ts'
import * as results from '../schema/ipv4ReservationResults.ts'
import { changing } from './changing.ts'
import '../schema/operators/ruleChange.ts'

builder.mutationFields((t) => ({
  createIPv4Reservation: t.field({
    type: results.CreateIPv4ReservationResult,
    nullable: true,
    description:
      'Reserves a static IPv4 address in a region. It stays the same until the reservation is deleted.',
    args: {
      input: t.arg({
        type: inputs.CreateIPv4ReservationInput,
        required: true,
        description: 'The reservation to create.',
      }),
    },
    resolve: (_root, { input }, context) => {
      requirePermission(context, 'ipv4reservations.create')
      return createIPv4Reservation(context.store, scopeOf(context), input)
    },
  }),
  updateIPv4Reservation: t.field({
    type: results.UpdateIPv4ReservationResult,
    nullable: true,
    description: 'Changes an IPv4 reservation. What is not named is kept.',
    args: {
      input: t.arg({
        type: inputs.UpdateIPv4ReservationInput,
        required: true,
        description: 'What to change.',
      }),
    },
    resolve: (_root, { input }, context) =>
      changing(
        context,
        input,
        ['ipv4reservations.update'],
        { type: 'IPv4Reservation', id: input.id, path: 'id' },
        (scope, id) => updateIPv4Reservation(context.store, scope, { ...input, id }),
      ),
  }),
  deleteIPv4Reservation: t.field({
    type: results.DeleteIPv4ReservationResult,
    nullable: true,
    description: 'Gives an IPv4 address back. It must not be bound.',
    args: {
      input: t.arg({
        type: inputs.DeleteIPv4ReservationInput,
        required: true,
        description: 'Which one to delete.',
      }),
    },
    resolve: (_root, { input }, context) =>
      changing(
        context,
        input,
        ['ipv4reservations.delete'],
        { type: 'IPv4Reservation', id: input.id, path: 'id' },
        (scope, id) => deleteIPv4Reservation(context.store, scope, { ...input, id }),
      ),
  }),
  bindIPv4Reservation: t.field({
    type: results.BindIPv4ReservationResult,
    nullable: true,
    description:
      'Makes a reserved IPv4 address an address of a load balancer. Binding it again to the same one changes nothing.',
    args: {
      input: t.arg({
        type: inputs.BindIPv4ReservationInput,
        required: true,
        description: 'What to bind to what.',
      }),
    },
    resolve: (_root, { input }, context) =>
      changing(
        context,
        input,
        ['ipv4reservations.use', 'loadbalancers.update'],
        { type: 'LoadBalancer', id: input.loadBalancer, path: 'loadBalancer' },
        (scope, loadBalancer, ids) =>
          bindIPv4Reservation(context.store, scope, {
            ...input,
            reservation: ids.uuid('IPv4Reservation', input.reservation),
            loadBalancer,
          }),
      ),
  }),
  unbindIPv4Reservation: t.field({
    type: results.UnbindIPv4ReservationResult,
    nullable: true,
    description:
      'Takes a reserved IPv4 address from a load balancer. The reservation keeps the address. One that another load balancer has by now is left alone.',
    args: {
      input: t.arg({
        type: inputs.UnbindIPv4ReservationInput,
        required: true,
        description: 'What to take from what.',
      }),
    },
    resolve: (_root, { input }, context) =>
      changing(
        context,
        input,
        ['ipv4reservations.use', 'loadbalancers.update'],
        { type: 'LoadBalancer', id: input.loadBalancer, path: 'loadBalancer' },
        (scope, loadBalancer, ids) =>
          unbindIPv4Reservation(context.store, scope, {
            ...input,
            reservation: ids.uuid('IPv4Reservation', input.reservation),
            loadBalancer,
          }),
      ),
  }),
  moveIPv4Reservation: t.field({
    type: results.MoveIPv4ReservationResult,
    nullable: true,
    description:
      'Moves a reserved IPv4 address from the load balancer that has it to another, as one change: it is never served by both at once, and never lost.',
    args: {
      input: t.arg({
        type: inputs.MoveIPv4ReservationInput,
        required: true,
        description: 'What to move from where to where.',
      }),
    },
    resolve: (_root, { input }, context) =>
      changing(
        context,
        input,
        ['ipv4reservations.use', 'loadbalancers.update'],
        { type: 'LoadBalancer', id: input.to, path: 'to' },
        (scope, to, ids) =>
          moveIPv4Reservation(context.store, scope, {
            ...input,
            reservation: ids.uuid('IPv4Reservation', input.reservation),
            from: ids.uuid('LoadBalancer', input.from),
            to,
          }),
      ),
  }),
}))
