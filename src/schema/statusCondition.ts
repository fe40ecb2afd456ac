import type { StatusCondition as ConditionRecord } from '../domain/records.ts'
import { builder } from './builder.ts'

export const ConditionStatus = builder.enumType('ConditionStatus', {
  description: 'Whether something holds.',
  values: {
    TRUE: { description: 'It holds.' },
    FALSE: { description: 'It does not hold; the reason says why.' },
    UNKNOWN: {
      description:
        'It is not known at the moment, e.g. because a part of the platform does not answer.',
    },
  } as const,
})

export const StatusCondition = builder.objectRef<ConditionRecord>('StatusCondition')

StatusCondition.implement({
  description: 'One thing that is known about an object: whether it holds, why, and since when.',
  fields: (t) => ({
    type: t.exposeString('type', { description: 'What it is about, e.g. `Advertised`.' }),
    status: t.expose('status', { type: ConditionStatus, description: 'Whether it holds.' }),
    reason: t.exposeString('reason', {
      description:
        'Why, as one word in CamelCase for programs, e.g. `NoBackends`. All of them are listed in the documentation of reasons.',
    }),
    message: t.exposeString('message', { description: 'Why, in words for people.' }),
    lastTransitionTime: t.expose('lastTransitionTime', {
      type: 'DateTime',
      description: 'When `status` last changed.',
    }),
    observedGeneration: t.exposeInt('observedGeneration', {
      description: 'The generation of the object that this was found out about.',
    }),
  }),
})
