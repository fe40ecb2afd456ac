import { reportReachability } from '../../domain/operators/reachability.ts'
import { FOR_OPERATORS } from '../../schema/audience.ts'
import { builder } from '../../schema/builder.ts'
import { requirePermission } from '../../schema/context.ts'
import { ReportReachabilityInput } from '../../schema/operators/inputs.ts'
import { ReportReachabilityResult } from '../../schema/operators/results.ts'

builder.mutationFields((t) => ({
  reportReachability: t.field({
    type: ReportReachabilityResult,
    nullable: true,
    description:
      'Takes in what a vantage point outside found: whether connections to addresses come through.',
    extensions: FOR_OPERATORS,
    args: {
      input: t.arg({
        type: ReportReachabilityInput,
        required: true,
        description: 'What it found.',
      }),
    },
    resolve: (_root, { input }, context) => {
      requirePermission(context, 'reachability.report')
      return reportReachability(context.store, input, context.clock.now())
    },
  }),
}))
