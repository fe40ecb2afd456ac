import type { QuotaRecord } from '../domain/quotas.ts'
import { builder } from './builder.ts'

export const Quota = builder.objectRef<QuotaRecord>('Quota')

Quota.implement({
  description:
    'How much of something a project may have in a region, and how much it has: counted from what exists, so it never drifts.',
  fields: (t) => ({
    resource: t.exposeString('resource', {
      description:
        'What is counted: `networking.datumapis.com/loadbalancers`, `…/ipv4reservations`, `…/rulespervpc` (virtual addresses of one VPC; used is that of the fullest) or `…/backends` (of one load balancer; used is that of the fullest).',
    }),
    region: t.exposeString('region', {
      nullable: true,
      description: 'The code of the region that it is about. Null is kept for quotas of all.',
    }),
    used: t.exposeInt('used', { description: 'How much there is now.' }),
    limit: t.exposeInt('limit', {
      nullable: true,
      description: 'How much there may be; null: as much as is wanted.',
    }),
  }),
})
