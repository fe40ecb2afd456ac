import {
  countProjects,
  listProjects,
  setProjectRelease,
  setQuota,
} from '../../domain/operators/projects.ts'
import { FOR_OPERATORS } from '../../schema/audience.ts'
import { builder } from '../../schema/builder.ts'
import { requirePermission } from '../../schema/context.ts'
import * as inputs from '../../schema/operators/inputs.ts'
import { ProjectConnection } from '../../schema/operators/project.ts'
import * as results from '../../schema/operators/results.ts'
import { connection, pageArgs, pageRequest } from '../../schema/pages.ts'

const extensions = FOR_OPERATORS

builder.queryFields((t) => ({
  projects: t.field({
    type: ProjectConnection,
    description: 'The projects that are known, by name.',
    extensions,
    args: pageArgs(t.arg),
    resolve: async (_root, args, context) => {
      requirePermission(context, 'projects.list')
      const { store } = context
      return connection(await listProjects(store, pageRequest(args)), () => countProjects(store))
    },
  }),
}))

builder.mutationFields((t) => ({
  setQuota: t.field({
    type: results.SetQuotaResult,
    nullable: true,
    description:
      'Sets how much a project may have of something. What it has already it keeps, also beyond a lower limit.',
    extensions,
    args: {
      input: t.arg({ type: inputs.SetQuotaInput, required: true, description: 'The quota.' }),
    },
    resolve: (_root, { input }, context) => {
      requirePermission(context, 'quotas.update')
      const { region = null, limit = null, ...named } = input
      return setQuota(context.store, { ...named, region, limit })
    },
  }),
  setProjectRelease: t.field({
    type: results.SetProjectReleaseResult,
    nullable: true,
    description:
      'Opens or closes load balancers to a project. Until its project is open, changes of a tenant answer NotReleased; reading works, and what runs goes on.',
    extensions,
    args: {
      input: t.arg({
        type: inputs.SetProjectReleaseInput,
        required: true,
        description: 'The project, and whether it is open.',
      }),
    },
    resolve: (_root, { input }, context) => {
      requirePermission(context, 'projects.update')
      return setProjectRelease(context.store, input)
    },
  }),
}))
