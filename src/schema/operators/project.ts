import type { ProjectRecord } from '../../domain/operators/projects.ts'
import { readQuotas } from '../../domain/quotas.ts'
import { FOR_OPERATORS } from '../audience.ts'
import { builder } from '../builder.ts'
import { requirePermission } from '../context.ts'
import { total } from '../pages.ts'
import { Quota } from '../quota.ts'

export const Project = builder.objectRef<ProjectRecord>('Project')

Project.implement({
  description: 'A tenant: it owns load balancers and reservations.',
  extensions: FOR_OPERATORS,
  fields: (t) => ({
    name: t.exposeString('name', { description: 'Its name, as it stands in paths.' }),
    released: t.exposeBoolean('released', {
      description: 'Whether load balancers are open to it; until then its changes are refused.',
    }),
    quotas: t.field({
      type: [Quota],
      description: 'How much it may have and has, in every region.',
      resolve: ({ name: project }, _args, context) => {
        requirePermission(context, 'quotas.list')
        return readQuotas(context.store, { project, region: null })
      },
    }),
  }),
})

export const ProjectConnection = builder.connectionObject(
  {
    type: Project,
    name: 'ProjectConnection',
    description: 'A page of projects.',
    extensions: FOR_OPERATORS,
    fields: (t) => ({
      totalCount: t.int({
        description: 'How many there are in all, over every page.',
        resolve: total,
      }),
    }),
  },
  {
    name: 'ProjectEdge',
    description: 'A project and its place in the list.',
    extensions: FOR_OPERATORS,
  },
)
