import { FOR_OPERATORS } from '../audience.ts'
import { builder } from '../builder.ts'
import { Evidence, seesClusters } from '../explanation.ts'

builder.objectField(Evidence, 'cluster', (t) =>
  t.string({
    nullable: true,
    description:
      'The name of the cluster that it was seen in; null where it is about none. Needs the permission to list clusters.',
    extensions: FOR_OPERATORS,
    resolve: ({ cluster }, _args, context) => (seesClusters(context) ? cluster : null),
  }),
)
