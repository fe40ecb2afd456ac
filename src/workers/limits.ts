import { TEARDOWN_PATIENCE } from '../rules/evidence.ts'

/** What the data plane can hold and how long things may take; tests make them smaller. */
export type Limits = {
  /** Rows (one for each VIP of every rule) that a gateway holds for all tenants together. */
  vipRows: number
  /** How long (ms) what was removed may wait for the data plane before it counts as stuck. */
  teardownPatience: number
  /** A cluster's schema is read again this often (ms), and whenever a write finds it changed. */
  rereadSchema: number
  /** Whether a cluster answers is asked this often (ms): one that nobody writes to is silent otherwise. */
  ask: number
  /** What has no owner is looked for this often (ms). */
  sweep: number
  /** That attachments vanished is believed after this time (ms): what vanishes at once is seen together. */
  settle: number
  /** Too much having vanished, it is looked at once more after this time (ms) of quiet. */
  confirm: number
}

export const LIMITS: Limits = {
  vipRows: 4_096,
  teardownPatience: TEARDOWN_PATIENCE,
  rereadSchema: 60_000,
  ask: 10_000,
  sweep: 60_000,
  settle: 200,
  confirm: 2_000,
}
