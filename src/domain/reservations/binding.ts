import type { ReservationRecord, StatusCondition } from '../records.ts'

type Binding = ReservationRecord['bindings'][number]

/** What a reservation's bindings come to: whom it is bound to, and who has not let go of it yet. */
export type BindingFacts = {
  now: string
  /** The load balancer it is bound to; `provisioned`: of its VIP there, undefined before the first fold. */
  holder: { id: string; provisioned: StatusCondition | undefined } | null
  /** Other load balancers with an open hold on the address. */
  leaving: string[]
  previous: Binding[]
}

/** Pure: the bindings and the state that is their roll-up. */
export function foldBindings(facts: BindingFacts): Pick<ReservationRecord, 'state' | 'bindings'> {
  const bindings: Binding[] = []
  if (facts.holder !== null) bindings.push(bound(facts, facts.holder))
  for (const id of facts.leaving) {
    const effective = condition(facts, id, {
      status: 'FALSE',
      reason: 'Withdrawing',
      message: 'The address is being taken out of this load balancer.',
      observedGeneration: 0,
    })
    bindings.push({ loadBalancer: id, state: 'UNBINDING', effective })
  }
  const [first] = bindings
  if (facts.holder === null || first === undefined) {
    return { state: bindings.length === 0 ? 'RESERVED' : 'UNBINDING', bindings }
  }
  return { state: first.state === 'BOUND' ? 'BOUND' : 'BINDING', bindings }
}

function bound(facts: BindingFacts, holder: NonNullable<BindingFacts['holder']>): Binding {
  const { provisioned } = holder
  if (facts.leaving.length > 0) {
    const effective = condition(facts, holder.id, {
      status: 'FALSE',
      reason: 'AddressHeldElsewhere',
      message:
        'It is served here as soon as the load balancer that had it before has let go of it.',
      observedGeneration: provisioned?.observedGeneration ?? 0,
    })
    return { loadBalancer: holder.id, state: 'WAITING', effective }
  }
  const found = provisioned ?? {
    status: 'FALSE' as const,
    reason: 'Progressing',
    message: 'What was asked for last is on its way.',
    observedGeneration: 0,
  }
  // An address of a family that isn't served is bound all the same: nothing more will happen.
  const settled = found.status === 'TRUE' || found.reason === 'AddressFamilyNotServed'
  const effective = condition(facts, holder.id, found)
  return { loadBalancer: holder.id, state: settled ? 'BOUND' : 'BINDING', effective }
}

function condition(
  facts: BindingFacts,
  loadBalancer: string,
  found: Pick<StatusCondition, 'status' | 'reason' | 'message' | 'observedGeneration'>,
): StatusCondition {
  const before = facts.previous.find((binding) => binding.loadBalancer === loadBalancer)
  const same = before?.effective.status === found.status
  return {
    type: 'Effective',
    status: found.status,
    reason: found.reason,
    message: found.message,
    lastTransitionTime: same ? before.effective.lastTransitionTime : facts.now,
    observedGeneration: found.observedGeneration,
  }
}
