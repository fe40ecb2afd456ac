import { deleteAddressPool, updateAddressPool } from '../../domain/operators/poolChanges.ts'
import { countPools, listPools, readPools } from '../../domain/operators/poolRecord.ts'
import { createAddressPool } from '../../domain/operators/pools.ts'
import { Refusal } from '../../domain/refusals.ts'
import { FOR_OPERATORS } from '../../schema/audience.ts'
import { builder } from '../../schema/builder.ts'
import { requirePermission } from '../../schema/context.ts'
import { AddressPoolConnection } from '../../schema/operators/addressPool.ts'
import * as inputs from '../../schema/operators/inputs.ts'
import * as results from '../../schema/operators/results.ts'
import { connection, pageArgs, pageRequest } from '../../schema/pages.ts'
import { valid } from '../../schema/valid.ts'
import { GivenIds } from '../givenIds.ts'

const extensions = FOR_OPERATORS

builder.queryFields((t) => ({
  addressPools: t.field({
    type: AddressPoolConnection,
    description: 'The pools, by name.',
    extensions,
    args: {
      ...pageArgs(t.arg),
      region: t.arg.string({ description: 'Only those of the region with this code.' }),
    },
    resolve: async (_root, args, context) => {
      requirePermission(context, 'addresspools.list')
      const { store } = context
      const region = valid(args).region ?? null
      return connection(await listPools(store, { region, page: pageRequest(args) }), () =>
        countPools(store, region),
      )
    },
  }),
}))

builder.mutationFields((t) => ({
  createAddressPool: t.field({
    type: results.CreateAddressPoolResult,
    nullable: true,
    description: 'Makes a pool, which hands out at once.',
    extensions,
    args: {
      input: t.arg({
        type: inputs.CreateAddressPoolInput,
        required: true,
        description: 'The pool.',
      }),
    },
    resolve: async (_root, { input }, context) => {
      requirePermission(context, 'addresspools.create')
      const answer = await createAddressPool(context.store, input)
      if (answer instanceof Refusal) return answer
      const { id } = answer.pool
      const pool = (await readPools(context.store, [id])).get(id)
      if (pool === undefined) throw new Error(`pool ${id} was deleted meanwhile`)
      return { pool }
    },
  }),
  updateAddressPool: t.field({
    type: results.UpdateAddressPoolResult,
    nullable: true,
    description:
      'Changes a pool. What is not named is kept; an address that somebody has stays, or the change is refused.',
    extensions,
    args: {
      input: t.arg({
        type: inputs.UpdateAddressPoolInput,
        required: true,
        description: 'What to change.',
      }),
    },
    resolve: async (_root, { input }, context) => {
      requirePermission(context, 'addresspools.update')
      const ids = new GivenIds()
      const id = ids.uuid('AddressPool', input.id)
      return ids.told(await updateAddressPool(context.store, { ...input, id }))
    },
  }),
  deleteAddressPool: t.field({
    type: results.DeleteAddressPoolResult,
    nullable: true,
    description: 'Takes a pool away, once nobody has an address of it.',
    extensions,
    args: {
      input: t.arg({
        type: inputs.DeleteAddressPoolInput,
        required: true,
        description: 'Which one.',
      }),
    },
    resolve: async (_root, { input }, context) => {
      requirePermission(context, 'addresspools.delete')
      const ids = new GivenIds()
      return ids.told(await deleteAddressPool(context.store, ids.uuid('AddressPool', input.id)))
    },
  }),
}))
