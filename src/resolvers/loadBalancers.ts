import { countLoadBalancers, listLoadBalancers } from '../domain/loadBalancers/list.ts'
import { findLoadBalancerByName } from '../domain/loadBalancers/read.ts'
import { builder } from '../schema/builder.ts'
import { projectOf, requirePermission } from '../schema/context.ts'
import { uuidOf } from '../schema/ids.ts'
import { LoadBalancer, LoadBalancerConnection } from '../schema/loadBalancer.ts'
import { LoadBalancerFilter, loadBalancerFilter } from '../schema/loadBalancerFilter.ts'
import { LoadBalancerOrder } from '../schema/loadBalancerOrder.ts'
import { loadAll } from '../schema/loaders.ts'
import { connectionOf, pageArgs, pageRequest } from '../schema/pages.ts'
import { valid } from '../schema/valid.ts'

builder.queryFields((t) => ({
  loadBalancer: t.field({
    type: LoadBalancer,
    nullable: true,
    description: 'The load balancer with this id; null where there is none.',
    args: { id: t.arg.id({ required: true, description: 'Its id.' }) },
    resolve: (_root, { id }, context) => {
      requirePermission(context, 'loadbalancers.get')
      const uuid = uuidOf('LoadBalancer', id)
      return uuid === null ? null : context.loaders.loadBalancers.load(uuid)
    },
  }),
  loadBalancerByName: t.field({
    type: LoadBalancer,
    nullable: true,
    description:
      'The load balancer of the project with this name in this region; null where there is none. One that is being deleted has given its name back.',
    args: {
      region: t.arg.string({ required: true, description: 'The code of its region.' }),
      name: t.arg({ type: 'ResourceName', required: true, description: 'Its name.' }),
    },
    resolve: async (_root, args, context) => {
      requirePermission(context, 'loadbalancers.get')
      const { store, loaders } = context
      const project = projectOf(context)
      const id = await findLoadBalancerByName(store, { project, ...valid(args) })
      return id === null ? null : loaders.loadBalancers.load(id)
    },
  }),
  loadBalancers: t.field({
    type: LoadBalancerConnection,
    description: 'The load balancers of the project.',
    args: {
      ...pageArgs(t.arg),
      filter: t.arg({
        type: LoadBalancerFilter,
        description: 'Which ones; all where none is given.',
      }),
      orderBy: t.arg({
        type: LoadBalancerOrder,
        description: 'In which order; oldest first where none is given.',
      }),
    },
    resolve: (_root, args, context) => {
      requirePermission(context, 'loadbalancers.list')
      const { store, project, loaders } = context
      const selection = { project, filter: loadBalancerFilter(args.filter) }
      const order = args.orderBy && {
        field: args.orderBy.field,
        direction: args.orderBy.direction ?? ('ASC' as const),
      }
      const page = pageRequest(args)
      return connectionOf(
        listLoadBalancers(store, { ...selection, page, ...(order ? { order } : {}) }),
        (ids) => loadAll(loaders.loadBalancers, ids),
        () => countLoadBalancers(store, selection),
      )
    },
  }),
}))
