import {
  addBackends,
  removeBackends,
  setBackends,
  updateBackends,
} from '../domain/loadBalancers/backends.ts'
import { createLoadBalancer } from '../domain/loadBalancers/create.ts'
import { deleteLoadBalancer } from '../domain/loadBalancers/delete.ts'
import { updateLoadBalancer } from '../domain/loadBalancers/update.ts'
import { builder } from '../schema/builder.ts'
import { requirePermission, scopeOf } from '../schema/context.ts'
import * as inputs from '../schema/loadBalancerInputs.ts'
import * as results from '../schema/loadBalancerResults.ts'
import { GivenIds } from './givenIds.ts'

builder.mutationFields((t) => ({
  createLoadBalancer: t.field({
    type: results.CreateLoadBalancerResult,
    nullable: true,
    description:
      'Creates a load balancer. It has its IPv6 address at once; its status tells when it serves.',
    args: {
      input: t.arg({
        type: inputs.CreateLoadBalancerInput,
        required: true,
        description: 'The load balancer to create.',
      }),
    },
    resolve: async (_root, { input }, context) => {
      requirePermission(context, 'loadbalancers.create')
      const ids = new GivenIds()
      return ids.told(
        await createLoadBalancer(context.store, scopeOf(context), {
          ...input,
          vpc: ids.uuid('Vpc', input.vpc),
          ipv4Reservations: input.ipv4Reservations?.map((id) => ids.uuid('IPv4Reservation', id)),
        }),
      )
    },
  }),
  updateLoadBalancer: t.field({
    type: results.UpdateLoadBalancerResult,
    nullable: true,
    description: 'Changes a load balancer. What is not named is kept.',
    args: {
      input: t.arg({
        type: inputs.UpdateLoadBalancerInput,
        required: true,
        description: 'What to change.',
      }),
    },
    resolve: async (_root, { input }, context) => {
      requirePermission(context, 'loadbalancers.update')
      const ids = new GivenIds()
      const id = ids.uuid('LoadBalancer', input.id)
      return ids.told(await updateLoadBalancer(context.store, scopeOf(context), { ...input, id }))
    },
  }),
  deleteLoadBalancer: t.field({
    type: results.DeleteLoadBalancerResult,
    nullable: true,
    description:
      'Deletes a load balancer. Its name and quota are free at once; its IPv4 reservations stay yours, with the same addresses.',
    args: {
      input: t.arg({
        type: inputs.DeleteLoadBalancerInput,
        required: true,
        description: 'Which one to delete.',
      }),
    },
    resolve: async (_root, { input }, context) => {
      requirePermission(context, 'loadbalancers.delete')
      const ids = new GivenIds()
      const id = ids.uuid('LoadBalancer', input.id)
      return ids.told(await deleteLoadBalancer(context.store, scopeOf(context), { ...input, id }))
    },
  }),
  addBackends: t.field({
    type: results.AddBackendsResult,
    nullable: true,
    description:
      'Adds backends to a load balancer. An address that is already there is left as it is.',
    args: {
      input: t.arg({
        type: inputs.AddBackendsInput,
        required: true,
        description: 'What to add, and where.',
      }),
    },
    resolve: async (_root, { input }, context) => {
      requirePermission(context, 'loadbalancers.update')
      const ids = new GivenIds()
      const loadBalancer = ids.uuid('LoadBalancer', input.loadBalancer)
      return ids.told(
        await addBackends(context.store, scopeOf(context), { ...input, loadBalancer }),
      )
    },
  }),
  removeBackends: t.field({
    type: results.RemoveBackendsResult,
    nullable: true,
    description: 'Removes backends from a load balancer. An address that is not there is no error.',
    args: {
      input: t.arg({
        type: inputs.RemoveBackendsInput,
        required: true,
        description: 'What to remove, and from where.',
      }),
    },
    resolve: async (_root, { input }, context) => {
      requirePermission(context, 'loadbalancers.update')
      const ids = new GivenIds()
      const loadBalancer = ids.uuid('LoadBalancer', input.loadBalancer)
      return ids.told(
        await removeBackends(context.store, scopeOf(context), { ...input, loadBalancer }),
      )
    },
  }),
  setBackends: t.field({
    type: results.SetBackendsResult,
    nullable: true,
    description:
      'Makes the backends of a load balancer exactly those given. Those that stay keep their id, health and history.',
    args: {
      input: t.arg({
        type: inputs.SetBackendsInput,
        required: true,
        description: 'The backends to have from now on.',
      }),
    },
    resolve: async (_root, { input }, context) => {
      requirePermission(context, 'loadbalancers.update')
      const ids = new GivenIds()
      const loadBalancer = ids.uuid('LoadBalancer', input.loadBalancer)
      return ids.told(
        await setBackends(context.store, scopeOf(context), { ...input, loadBalancer }),
      )
    },
  }),
  updateBackends: t.field({
    type: results.UpdateBackendsResult,
    nullable: true,
    description:
      'Changes some backends of a load balancer, told by their addresses, as one change.',
    args: {
      input: t.arg({
        type: inputs.UpdateBackendsInput,
        required: true,
        description: 'What to change, and where.',
      }),
    },
    resolve: async (_root, { input }, context) => {
      requirePermission(context, 'loadbalancers.update')
      const ids = new GivenIds()
      const loadBalancer = ids.uuid('LoadBalancer', input.loadBalancer)
      return ids.told(
        await updateBackends(context.store, scopeOf(context), { ...input, loadBalancer }),
      )
    },
  }),
}))
