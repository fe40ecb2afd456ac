import { createRegion } from '../../domain/operators/regions.ts'
import { Refusal } from '../../domain/refusals.ts'
import { FOR_OPERATORS } from '../../schema/audience.ts'
import { builder } from '../../schema/builder.ts'
import { requirePermission } from '../../schema/context.ts'
import { CreateRegionInput } from '../../schema/operators/inputs.ts'
import { regionById } from '../../schema/operators/regionById.ts'
import { CreateRegionResult } from '../../schema/operators/results.ts'

builder.mutationFields((t) => ({
  createRegion: t.field({
    type: CreateRegionResult,
    nullable: true,
    description: 'Makes a region. It takes load balancers once it has a cluster and an IPv6 pool.',
    extensions: FOR_OPERATORS,
    args: {
      input: t.arg({ type: CreateRegionInput, required: true, description: 'The region.' }),
    },
    resolve: async (_root, { input }, context) => {
      requirePermission(context, 'regions.create')
      const answer = await createRegion(context.store, input)
      if (answer instanceof Refusal) return answer
      // Another mutation of the request may have read them before.
      context.loaders.forget()
      return { region: await regionById(context, answer.region.id) }
    },
  }),
}))
