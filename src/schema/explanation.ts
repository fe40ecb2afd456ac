import type * as explained from '../domain/explain/explanation.ts'
import { builder } from './builder.ts'
import type { Context } from './context.ts'
import { ConditionStatus } from './statusCondition.ts'

export const Evidence = builder.objectRef<explained.Evidence>('Evidence')

/** Names of clusters and nodes are for those who may see clusters, in the operators' scope. */
export const seesClusters = ({ project, permissions }: Context): boolean =>
  project === null && permissions.has('clusters.list')

Evidence.implement({
  description: 'Something that was seen, and that a step of an explanation rests on.',
  fields: (t) => ({
    what: t.exposeString('what', { description: 'What was looked at.' }),
    value: t.string({
      description:
        'What was found: often a status and a reason, followed by what they mean in words for people.',
      resolve: ({ value, detail }, _args, context) =>
        detail !== undefined && seesClusters(context) ? detail : value,
    }),
    seenAt: t.expose('seenAt', {
      type: 'DateTime',
      nullable: true,
      description:
        'When it was found, or since when it is so; null for what is known without having been looked at.',
    }),
  }),
})

const ExplanationStep = builder.objectRef<explained.ExplanationStep>('ExplanationStep')

ExplanationStep.implement({
  description: 'One link between what was asked for and a client that is served.',
  fields: (t) => ({
    name: t.exposeString('name', {
      description:
        'Which link it is, in this order: `Accepted` (the change is kept), `AddressesHeld` (its addresses are its own), `BackendsResolved` (backends are known in the VPC), `RuleApplied` (it is written wherever it should be), `DataPlaneAccepted` (what carries traffic has taken it), `Programmed` (gateways and the machines of backends are set up), `Advertised` (addresses are announced to the network), `BackendsHealthy` (backends answer), `Reachable` (clients outside get through). More may come.',
    }),
    status: t.expose('status', {
      type: ConditionStatus,
      description: 'Whether the link holds wherever it should.',
    }),
    reason: t.exposeString('reason', {
      description:
        'Why, as one word in CamelCase for programs. All of them are listed in the documentation of reasons.',
    }),
    message: t.exposeString('message', { description: 'Why, in words for people.' }),
    remedy: t.exposeString('remedy', {
      nullable: true,
      description: 'What would mend it, in words to act on; null where the link holds.',
    }),
    evidence: t.field({
      type: [Evidence],
      description: 'What this rests on.',
      resolve: ({ evidence }, _args, context) =>
        evidence.filter(({ operatorsOnly }) => !operatorsOnly || seesClusters(context)),
    }),
  }),
})

export const Explanation = builder.objectRef<explained.Explanation>('Explanation')

Explanation.implement({
  description:
    'What stands between what was asked for and a client that is served, as it is now: every link of the chain with its evidence.',
  fields: (t) => ({
    reachable: t.exposeBoolean('reachable', {
      description:
        'Whether clients outside reach all of its addresses that are served, as far as it is known: the status of the step `Reachable`.',
    }),
    firstBroken: t.expose('firstBroken', {
      type: ExplanationStep,
      nullable: true,
      description:
        'The first link that nothing gets past. Where connections are carried all the same: the first one that is not whole, e.g. because one of several places is lost, or a part of what was asked for is not served. Null where every link holds.',
    }),
    steps: t.expose('steps', {
      type: [ExplanationStep],
      description: 'Every link, in the order of the chain.',
    }),
  }),
})
