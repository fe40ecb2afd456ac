import type { Reason } from '../../rules/reasons.ts'
import type { PlacementReport } from '../../rules/report.ts'
import type { SessionAffinity } from '../../rules/wanted.ts'
import type { AddressRecord, BackendRecord } from '../records.ts'
import type { Status } from '../status.ts'
import type { VantageProbe } from './probes.ts'

/** All that the status of a load balancer follows from, read under its row's lock. */
export type FoldInput = {
  /** RFC 3339, UTC, milliseconds. */
  now: string
  loadBalancer: {
    generation: number
    /** The last generation that changed rules. */
    rulesGeneration: number
    deleting: boolean
    sessionAffinity: SessionAffinity
    createdAt: string
    /** Of the health check; 0 where it isn't given. */
    minimumHealthyPercent?: number
  }
  addresses: AddressRecord[]
  backends: FoldBackend[]
  /** null: not known (as before the first fold): then nothing counts as settled. */
  placements: FoldPlacement[] | null
  /** Of vantage points outside, by address; absent: nobody looks. */
  probes?: VantageProbe[]
  previous: Status | null
}

export type FoldBackend = BackendRecord & {
  /** Names of the clusters whose inventory has the address now. */
  knownIn: string[]
  /** Those of them that are cordoned and don't take it. */
  cordonedIn?: string[]
}

export type FoldPlacement = {
  /** The cluster's name; tenants never see it. */
  cluster: string
  placed: boolean
  asked: number
  /** The newest generation that a report said `inEffect` for; 0: none yet. */
  settledGeneration: number
  report: PlacementReport | null
  reportedAt: string | null
  /** What it serves isn't known since then; absent or null beside it: it doesn't answer. */
  unreachableSince: string | null
  unreachableReason?: Reason | null
}
