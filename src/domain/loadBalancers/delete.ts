import type { Store } from '../../db/client.ts'
import { fieldChanges } from '../events/append.ts'
import type { Planned } from '../plans/plan.ts'
import type { LoadBalancerRecord } from '../records.ts'
import { DeletionProtected, type Refusal } from '../refusals.ts'
import { refoldReservation } from '../reservations/refold.ts'
import type { Scope } from '../scope.ts'
import { changeLoadBalancer, type Decision } from './change.ts'
import type { DeleteLoadBalancerInput } from './inputs.ts'
import type { StoredLoadBalancer } from './stored.ts'

/**
 * Asks for the end of a load balancer: its name and quota are free at once, its reservations are
 * unbound, and it is gone when no cluster carries any of it. Asking again is no error.
 */
export async function deleteLoadBalancer(
  store: Store,
  scope: Scope,
  input: DeleteLoadBalancerInput,
): Promise<{ loadBalancer: LoadBalancerRecord } | Planned | Refusal> {
  const ask = {
    id: input.id,
    path: ['id'],
    expectedGeneration: input.expectedGeneration,
    issues: () => [],
    evenDeleting: true,
    validateOnly: input.validateOnly,
  }
  return changeLoadBalancer(store, scope, ask, decide)
}

function decide(current: StoredLoadBalancer): Decision | Refusal {
  const asked = current.deletingSince !== null
  if (current.deletionProtection && !asked) return new DeletionProtected()
  return {
    changes: asked ? [] : fieldChanges({ phase: current.phase }, { phase: 'DELETING' }),
    reason: 'LoadBalancerDeletionRequested',
    message: `The deletion of load balancer "${current.name}" was asked for.`,
    touchesRules: true,
    async write(client) {
      await client.query(
        `UPDATE load_balancer SET deleting_since = clock_timestamp() WHERE id = $1`,
        [current.id],
      )
      await client.query(
        `UPDATE ipv4_reservation SET load_balancer_id = NULL, bound_at = NULL,
           generation = generation + 1, updated_at = clock_timestamp()
         WHERE load_balancer_id = $1`,
        [current.id],
      )
      const former = current.addresses.flatMap(({ reservation }) => reservation ?? [])
      for (const id of former.sort()) await refoldReservation(client, id)
    },
  }
}
