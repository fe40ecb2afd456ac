import type { StatusCondition as Condition, LoadBalancerRecord } from '../domain/records.ts'
import { BackendCounts } from './backendCounts.ts'
import { builder } from './builder.ts'
import { StatusCondition } from './statusCondition.ts'

export const LoadBalancerPhase = builder.enumType('LoadBalancerPhase', {
  description: 'Where a load balancer stands, in one word. The conditions say why.',
  values: {
    PENDING: { description: 'It was created and has not been in effect yet.' },
    ACTIVE: { description: 'It serves as it was asked to.' },
    DEGRADED: {
      description:
        'It serves, but something is wrong: e.g. a backend is unhealthy, or a part of the platform does not answer.',
    },
    FAILED: { description: 'Nothing serves it, and it will not get better by itself.' },
    IDLE: { description: 'Nothing is wrong, but no backend is enabled.' },
    DELETING: { description: 'It is being deleted; it is gone once nothing serves it any more.' },
  } as const,
})

/** Stands in for a condition that nobody has reported yet. */
export function notReported(type: string, { status, updatedAt }: LoadBalancerRecord): Condition {
  return {
    type,
    status: 'UNKNOWN',
    reason: 'Progressing',
    message: 'What was asked for last is on its way.',
    lastTransitionTime: updatedAt,
    observedGeneration: status.observedGeneration,
  }
}

/** The condition of a type, which every load balancer has from its creation on. */
export function conditionOf(record: LoadBalancerRecord, type: string): Condition {
  return (
    record.status.conditions.find((condition) => condition.type === type) ??
    notReported(type, record)
  )
}

export const LoadBalancerStatus = builder.objectRef<LoadBalancerRecord>('LoadBalancerStatus')

LoadBalancerStatus.implement({
  description: 'How far what was asked for is in effect, and how it fares.',
  fields: (t) => {
    const condition = (type: string, description: string) =>
      t.field({
        type: StatusCondition,
        description,
        resolve: (record) => conditionOf(record, type),
      })
    return {
      phase: t.field({
        type: LoadBalancerPhase,
        description: 'Where it stands, in one word.',
        resolve: ({ status }) => status.phase,
      }),
      observedGeneration: t.int({
        description:
          "The newest generation that is in effect everywhere it should be, and gone from everywhere it should not. Equal to the load balancer's `generation` when nothing is on its way; 0 before the first time.",
        resolve: ({ status }) => status.observedGeneration,
      }),
      ready: condition(
        'Ready',
        'Whether clients are served. A change on its way does not lower it.',
      ),
      provisioned: condition(
        'Provisioned',
        'Whether everything that was asked for last is in effect.',
      ),
      advertised: condition(
        'Advertised',
        'Whether its addresses are announced to the network, so that packets find their way.',
      ),
      backendsHealthy: condition('BackendsHealthy', 'Whether its backends are well.'),
      reachable: condition('Reachable', 'Whether clients outside reach it.'),
      conditions: t.field({
        type: [StatusCondition],
        description: 'All of the above and any further ones, in a stable order.',
        resolve: ({ status }) => status.conditions,
      }),
      backendCounts: t.field({
        type: BackendCounts,
        description: 'How many backends it has, by what they do.',
        resolve: (record) => record,
      }),
    }
  },
})
