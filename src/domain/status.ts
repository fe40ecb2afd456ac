import type { StatusCondition } from './records.ts'

export type Phase = 'PENDING' | 'ACTIVE' | 'DEGRADED' | 'FAILED' | 'IDLE' | 'DELETING'

/** The folded status of a load balancer, as it is stored and shown. */
export type Status = {
  phase: Phase
  /** The newest generation in effect everywhere it should be, and gone everywhere it should not. */
  observedGeneration: number
  /** Ready, AddressesAllocated, BackendsResolved, Provisioned, Advertised, BackendsHealthy, Reachable, IPv4Served, AffinityHonoured, in this order; the last two only where they apply. */
  conditions: StatusCondition[]
  /** By VIP. */
  vips: Record<string, VipStatus>
  /** By backend id. */
  backends: Record<string, BackendStatus>
}

export type VipStatus = {
  provisioned: StatusCondition
  advertised: StatusCondition
  reachable: StatusCondition
}

export type BackendStatus = {
  resolved: StatusCondition
  serving: boolean
}
