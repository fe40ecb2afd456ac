import type { FoldInput, FoldPlacement } from '../fold.ts'
import { fold } from '../fold.ts'
import type { VantageProbe } from '../folding/probes.ts'
import type { AddressRecord, BackendRecord, LoadBalancerRecord, RegionRecord } from '../records.ts'
import type { Phase, Status } from '../status.ts'

/** A load balancer as `load_balancers_json` answers it. */
export type StoredLoadBalancer = Omit<LoadBalancerRecord, 'region' | 'status' | 'backends'> & {
  regionId: string
  rulesGeneration: number
  phase: Phase
  observedGeneration: number
  /** `cordonedIn` null: no cluster of its region keeps anything out. */
  backends: (BackendRecord & { knownIn: string[] | null; cordonedIn: string[] | null })[]
  addresses: AddressRecord[]
  /** null until the first fold. */
  status: Status | null
  /** null unless it was read for a fold. */
  placements: FoldPlacement[] | null
}

/** What the reports of all its clusters, as they were read, come to at an instant. */
export function foldStored(
  stored: StoredLoadBalancer,
  now: string,
  probes: VantageProbe[] = [],
): Status {
  return fold(foldInputOf(stored, now, probes))
}

/** A load balancer as a fold takes it. */
export function foldInputOf(
  stored: StoredLoadBalancer,
  now: string,
  probes: VantageProbe[],
): FoldInput {
  return {
    now,
    loadBalancer: {
      generation: stored.generation,
      rulesGeneration: stored.rulesGeneration,
      deleting: stored.deletingSince !== null,
      sessionAffinity: stored.sessionAffinity,
      createdAt: stored.createdAt,
      minimumHealthyPercent: stored.healthCheck.minimumHealthyPercent,
    },
    addresses: stored.addresses,
    backends: stored.backends.map((backend) => ({
      ...backend,
      knownIn: backend.knownIn ?? [],
      cordonedIn: backend.cordonedIn ?? [],
    })),
    placements: stored.placements ?? [],
    probes,
    previous: stored.status,
  }
}

/** The record that the graph shows. Before the first fold its status is the one that fold will find. */
export function toRecord(stored: StoredLoadBalancer, region: RegionRecord): LoadBalancerRecord {
  const { regionId, rulesGeneration, phase, observedGeneration, placements, ...shown } = stored
  return {
    ...shown,
    region,
    backends: stored.backends.map(({ knownIn, cordonedIn, ...backend }) => backend),
    status: stored.status ?? foldStored(stored, stored.createdAt),
  }
}
