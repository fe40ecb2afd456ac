/** Where load balancers can be: regions, and the VPCs of the project. */
import { countVpcs, findVpcByName, listVpcs } from '../domain/vpcs.ts'
import { builder } from '../schema/builder.ts'
import { projectOf } from '../schema/context.ts'
import { loadAll } from '../schema/loaders.ts'
import { connectionOf, pageArgs, pageRequest } from '../schema/pages.ts'
import { Region } from '../schema/region.ts'
import { filterOf, valid } from '../schema/valid.ts'
import { Vpc, VpcConnection, VpcFilter } from '../schema/vpc.ts'

builder.queryFields((t) => ({
  regions: t.field({
    type: [Region],
    description: 'All regions, ordered by code.',
    resolve: (_root, _args, { loaders }) => loaders.regions(),
  }),
  region: t.field({
    type: Region,
    nullable: true,
    description: 'The region with this code; null where there is none.',
    args: { code: t.arg.string({ required: true, description: 'Its code, e.g. `us-east-1`.' }) },
    resolve: async (_root, args, { loaders }) => {
      const { code } = valid(args)
      return (await loaders.regions()).find((region) => region.code === code) ?? null
    },
  }),
  vpcs: t.field({
    type: VpcConnection,
    description: 'The VPCs of the project, ordered by name.',
    args: {
      ...pageArgs(t.arg),
      filter: t.arg({ type: VpcFilter, description: 'Which ones; all where none is given.' }),
    },
    resolve: (_root, args, { store, project, loaders }) => {
      const selection = { project, filter: filterOf(args.filter) }
      return connectionOf(
        listVpcs(store, { ...selection, page: pageRequest(args) }),
        (ids) => loadAll(loaders.vpcs, ids),
        () => countVpcs(store, selection),
      )
    },
  }),
  vpcByName: t.field({
    type: Vpc,
    nullable: true,
    description: 'The VPC of the project with this name; null where there is none.',
    args: { name: t.arg.string({ required: true, description: 'Its name.' }) },
    resolve: async (_root, args, context) => {
      const { store, loaders } = context
      const id = await findVpcByName(store, { project: projectOf(context), ...valid(args) })
      return id === null ? null : loaders.vpcs.load(id)
    },
  }),
}))
