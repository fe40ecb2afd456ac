import type { BackendRecord, LoadBalancerRecord } from '../domain/records.ts'
import { builder } from './builder.ts'

export const BackendCounts = builder.objectRef<LoadBalancerRecord>('BackendCounts')

BackendCounts.implement({
  description:
    'How many backends a load balancer has. Healthy, unhealthy, unknown and notChecked add up to the total; the others count them from other sides.',
  fields: (t) => {
    const count = (
      description: string,
      counts: (backend: BackendRecord, record: LoadBalancerRecord) => boolean,
    ) =>
      t.int({
        description,
        resolve: (record) => record.backends.filter((backend) => counts(backend, record)).length,
      })
    return {
      total: count('All of them.', () => true),
      serving: count(
        'New connections are sent to them now.',
        ({ id }, { status }) => status.backends[id]?.serving ?? false,
      ),
      healthy: count('The health check says well.', ({ health }) => health.state === 'HEALTHY'),
      unhealthy: count('The health check fails.', ({ health }) => health.state === 'UNHEALTHY'),
      unknown: count(
        'The health check has not come to an answer yet.',
        ({ health }) => health.state === 'UNKNOWN',
      ),
      notChecked: count('Nobody checks them.', ({ health }) => health.state === 'NOT_CHECKED'),
      standby: count('Set to STANDBY.', ({ adminState }) => adminState === 'STANDBY'),
      disabled: count('Set to DISABLED.', ({ adminState }) => adminState === 'DISABLED'),
    }
  },
})
