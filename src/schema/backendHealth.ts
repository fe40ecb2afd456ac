import type { BackendRecord } from '../domain/records.ts'
import { builder } from './builder.ts'

export const HealthState = builder.enumType('HealthState', {
  description: 'What the health check says of a backend.',
  values: {
    HEALTHY: { description: 'It answers as it should.' },
    UNHEALTHY: { description: 'It failed often enough to be left out.' },
    UNKNOWN: { description: 'There is no answer yet. It serves meanwhile.' },
    NOT_CHECKED: {
      description: 'No health check, or nobody stands where it could be done. It serves.',
    },
  } as const,
})

export const BackendHealth = builder.objectRef<BackendRecord['health']>('BackendHealth')

BackendHealth.implement({
  description: 'What the health check found out about a backend.',
  fields: (t) => ({
    state: t.expose('state', { type: HealthState, description: 'The verdict.' }),
    reason: t.exposeString('reason', {
      description: 'Why, as one word in CamelCase for programs, e.g. `Flapping`.',
    }),
    message: t.exposeString('message', { description: 'Why, in words for people.' }),
    since: t.expose('since', { type: 'DateTime', description: 'Since when the verdict stands.' }),
    lastProbedAt: t.expose('lastProbedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When it was last probed; may lag by some seconds. Null where it never was.',
    }),
    consecutiveSuccesses: t.exposeInt('consecutiveSuccesses', {
      nullable: true,
      description:
        'Probes in a row that succeeded, up to the last; may lag by some seconds. Null where it was never probed.',
    }),
    consecutiveFailures: t.exposeInt('consecutiveFailures', {
      nullable: true,
      description:
        'Probes in a row that failed, up to the last; may lag by some seconds. Null where it was never probed.',
    }),
  }),
})
