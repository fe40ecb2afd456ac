import type { Reason } from './reasons.ts'

export type TruthValue = 'TRUE' | 'FALSE' | 'UNKNOWN'

/** One thing that was found out: whether it holds, why, and in a person's words. */
export type Finding = { status: TruthValue; reason: Reason; message: string }

/** What one cluster says of one load balancer, about one asked number. */
export type PlacementReport = {
  /** The placement's asked number that this is about. */
  asked: number
  /** The load balancer's generation that the desired objects were computed from. */
  generation: number
  /** All that is wanted here is in effect, and all that isn't wanted is gone. */
  inEffect: boolean
  /** By VIP: those wanted here, and those still here though no longer wanted. */
  vips: Record<string, VipReport>
  /** By backend id: those that live in this cluster. */
  backends: Record<string, BackendReport>
  affinity: Finding
  /** The cluster as a whole: e.g. NoGateway, SchemaMissing, ApplyFailed; TRUE/… when nothing is wrong. */
  cluster: Finding
}

export type VipReport = {
  /** A rule for it is wanted here. false: it is on its way out, or isn't served here (see `provisioned`). */
  wanted: boolean
  /** The rule is in the cluster as we want it. */
  applied: Finding
  /** The data plane accepted it. */
  accepted: Finding
  /** In effect by the evidence: accepted, programmed or bound, everywhere it must be. */
  provisioned: Finding
  /** Every gateway advertises exactly our prefix. */
  advertised: Finding
}

export type BackendReport = {
  /** New connections are sent to it by this cluster now (it is in a rule that is in effect). */
  serving: boolean
  /** TRUE Resolved, or why it is kept out here: NodeConflict, AttachmentShared, BackendsClaimed, AddressFamilyNotServed … */
  placed: Finding
}
