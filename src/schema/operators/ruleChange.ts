import type { RuleChange as Change } from '../../domain/plans/plan.ts'
import { FOR_OPERATORS } from '../audience.ts'
import { builder } from '../builder.ts'
import { FieldChange } from '../changeEvent.ts'
import { ChangeAction, ChangePlan } from '../changePlan.ts'

const RuleChange = builder.objectRef<Change>('RuleChange')

RuleChange.implement({
  description: 'What a change does to one object in one cluster.',
  extensions: FOR_OPERATORS,
  fields: (t) => ({
    cluster: t.exposeString('cluster', { description: 'The name of the cluster.' }),
    kind: t.exposeString('kind', {
      description: 'The kind of the object, e.g. `NetworkRule` or `ServiceVIPBinding`.',
    }),
    name: t.exposeString('name', {
      description:
        'Its name; of a VPCAttachment its namespace and name. What a new load balancer would get is named by an id that it will not have.',
    }),
    address: t.expose('address', {
      type: 'IPAddress',
      nullable: true,
      description: 'The virtual address that it is about; null where it is about all of them.',
    }),
    action: t.expose('action', {
      type: ChangeAction,
      description: 'What happens to it. A binding is never updated, but deleted and created.',
    }),
    diff: t.expose('diff', {
      type: [FieldChange],
      description:
        'The fields that differ, in paths of the object. Backends are named by their addresses.',
    }),
  }),
})

builder.objectField(ChangePlan, 'rules', (t) =>
  t.expose('rules', {
    type: [RuleChange],
    description:
      'Every object that would be written or removed, by cluster, kind and name; also those of other load balancers.',
    extensions: FOR_OPERATORS,
  }),
)
