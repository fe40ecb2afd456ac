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
import * as inputs from '../schema/loadBalancerInputs.ts'
import * as results from '../schema/loadBalancerResults.ts'
import { changing } from './changing.ts'

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
    resolve: (_root, { input }, context) =>
      changing(
        context,
        input,
        ['loadbalancers.create'],
        { type: 'Vpc', id: input.vpc, path: 'vpc' },
        (scope, vpc, ids) =>
          createLoadBalancer(context.store, scope, {
            ...input,
            vpc,
            ipv4Reservations: input.ipv4Reservations?.map((id) => ids.uuid('IPv4Reservation', id)),
          }),
      ),
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
    resolve: (_root, { input }, context) =>
      changing(
        context,
        input,
        ['loadbalancers.update'],
        { type: 'LoadBalancer', id: input.id, path: 'id' },
        (scope, id) => updateLoadBalancer(context.store, scope, { ...input, id }),
      ),
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
    resolve: (_root, { input }, context) =>
      changing(
        context,
        input,
        ['loadbalancers.delete'],
        { type: 'LoadBalancer', id: input.id, path: 'id' },
        (scope, id) => deleteLoadBalancer(context.store, scope, { ...input, id }),
      ),
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
    resolve: (_root, { input }, context) =>
      changing(
        context,
        input,
        ['loadbalancers.update'],
        { type: 'LoadBalancer', id: input.loadBalancer, path: 'loadBalancer' },
        (scope, loadBalancer) => addBackends(context.store, scope, { ...input, loadBalancer }),
      ),
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
    resolve: (_root, { input }, context) =>
      changing(
        context,
        input,
        ['loadbalancers.update'],
        { type: 'LoadBalancer', id: input.loadBalancer, path: 'loadBalancer' },
        (scope, loadBalancer) => removeBackends(context.store, scope, { ...input, loadBalancer }),
      ),
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
    resolve: (_root, { input }, context) =>
      changing(
        context,
        input,
        ['loadbalancers.update'],
        { type: 'LoadBalancer', id: input.loadBalancer, path: 'loadBalancer' },
        (scope, loadBalancer) => setBackends(context.store, scope, { ...input, loadBalancer }),
      ),
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
    resolve: (_root, { input }, context) =>
      changing(
        context,
        input,
        ['loadbalancers.update'],
        { type: 'LoadBalancer', id: input.loadBalancer, path: 'loadBalancer' },
        (scope, loadBalancer) => updateBackends(context.store, scope, { ...input, loadBalancer }),
      ),
  }),
}))
