import { builder } from '../schema/builder.ts'
import { type Context, requirePermission } from '../schema/context.ts'
import { overLimit } from '../schema/failures.ts'
import { decodeId } from '../schema/ids.ts'
import { Node } from '../schema/node.ts'
import { LARGEST_PAGE } from '../schema/pages.ts'
import type { NodeShape } from '../schema/shapes.ts'
import { readOperatorsNode } from './operators/nodes.ts'

builder.queryFields((t) => ({
  node: t.field({
    type: Node,
    nullable: true,
    description: 'The object with this id, whatever it is; null where there is none.',
    args: { id: t.arg.id({ required: true, description: 'The id of the object.' }) },
    resolve: (_root, { id }, context) => readNode(context, id),
  }),
  nodes: t.field({
    type: [Node],
    nullable: { list: false, items: true },
    description: 'The objects with these ids, in the same order; null for each that is none.',
    args: {
      ids: t.arg.idList({
        required: true,
        description: `The ids of the objects, at most ${LARGEST_PAGE}.`,
      }),
    },
    resolve: (_root, { ids }, context) => {
      if (ids.length > LARGEST_PAGE) {
        const message = `${ids.length} ids are given; at most ${LARGEST_PAGE} are read at once.`
        throw overLimit(message, 'page')
      }
      return Promise.all(ids.map((id) => readNode(context, id)))
    },
  }),
}))

async function readNode(context: Context, id: string): Promise<NodeShape | null> {
  const named = decodeId(id)
  if (named === null) return null
  const { loaders } = context
  switch (named.type) {
    case 'LoadBalancer':
      requirePermission(context, 'loadbalancers.get')
      return loaders.loadBalancers.load(named.uuid)
    case 'Backend': {
      requirePermission(context, 'loadbalancers.get')
      const loadBalancer = await loaders.loadBalancers.load(named.loadBalancer)
      const backend = loadBalancer?.backends.find((one) => one.id === named.uuid)
      return loadBalancer && backend ? { backend, loadBalancer } : null
    }
    case 'IPv4Reservation':
      requirePermission(context, 'ipv4reservations.get')
      return loaders.reservations.load(named.uuid)
    case 'Vpc':
      return loaders.vpcs.load(named.uuid)
    case 'Region':
      return (await loaders.regions()).find((region) => region.id === named.uuid) ?? null
    case 'ChangeEvent':
      requirePermission(context, 'loadbalancers.list', 'ipv4reservations.list')
      return loaders.events.load(named.uuid)
    case 'Cluster':
    case 'AddressPool':
      // Tenants don't know that there are such things.
      return context.project === null ? readOperatorsNode(context, named.type, named.uuid) : null
  }
}
