import { countEndpoints, listEndpoints } from '../domain/vpcs.ts'
import { builder } from './builder.ts'
import { Endpoint, EndpointFilter } from './endpoint.ts'
import { globalId } from './ids.ts'
import { Node } from './node.ts'
import { connection, pageArgs, pageRequest, total } from './pages.ts'
import type { VpcShape } from './shapes.ts'
import { filterOf } from './valid.ts'

export const Vpc = builder.objectRef<VpcShape>('Vpc')

Vpc.implement({
  description: 'A private network of your project. The addresses in it are what can be a backend.',
  interfaces: [Node],
  fields: (t) => ({
    id: t.id({
      description: 'Names this VPC among all objects of the API.',
      resolve: (vpc) => globalId('Vpc', vpc.id),
    }),
    name: t.exposeString('name', { description: 'Its name, unique in the project.' }),
    projectName: t.exposeString('project', { description: 'The project that it belongs to.' }),
    endpoints: t.field({
      type: EndpointConnection,
      description: 'The addresses known to live in it: what can be a backend. Ordered by address.',
      args: {
        ...pageArgs(t.arg),
        filter: t.arg({
          type: EndpointFilter,
          description: 'Which ones; all where none is given.',
        }),
      },
      resolve: async (vpc, args, { store }) => {
        const page = pageRequest(args)
        const filter = filterOf(args.filter)
        return connection(await listEndpoints(store, { vpc: vpc.id, filter, page }), () =>
          countEndpoints(store, { vpc: vpc.id, filter }),
        )
      },
    }),
  }),
})

const EndpointConnection = builder.connectionObject(
  {
    type: Endpoint,
    name: 'EndpointConnection',
    description: 'A page of addresses of a VPC.',
    fields: (t) => ({
      totalCount: t.int({
        description: 'How many there are in all, over every page.',
        resolve: total,
      }),
    }),
  },
  { name: 'EndpointEdge', description: 'An address of a VPC and its place in the list.' },
)

export const VpcConnection = builder.connectionObject(
  {
    type: Vpc,
    name: 'VpcConnection',
    description: 'A page of VPCs.',
    fields: (t) => ({
      totalCount: t.int({
        description: 'How many there are in all, over every page.',
        resolve: total,
      }),
    }),
  },
  { name: 'VpcEdge', description: 'A VPC and its place in the list.' },
)

export const VpcFilter = builder.inputType('VpcFilter', {
  description: 'Chooses VPCs. All that is given must match.',
  fields: (t) => ({ nameContains: t.string({ description: 'The name contains this text.' }) }),
})
