import { readQuotas } from '../domain/quotas.ts'
import { builder } from '../schema/builder.ts'
import { projectOf, requirePermission } from '../schema/context.ts'
import { Quota } from '../schema/quota.ts'
import { valid } from '../schema/valid.ts'

builder.queryFields((t) => ({
  quotas: t.field({
    type: [Quota],
    description:
      'How much the project may have and has, by region. Counted from what exists, so it never drifts.',
    args: {
      region: t.arg.string({
        description: 'The code of a region; every region where none is given.',
      }),
    },
    resolve: (_root, args, context) => {
      const project = projectOf(context)
      requirePermission(context, 'loadbalancers.list', 'ipv4reservations.list')
      return readQuotas(context.store, { project, region: valid(args).region ?? null })
    },
  }),
}))
